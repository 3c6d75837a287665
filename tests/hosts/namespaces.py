"""Namespaces of hosts, for the network and the host's name. They have no names in the file system: one lasts as long as a descriptor of it is
open or a process is in it, so nothing is left of it when these are gone, however they went. A thread is in a namespace; processes,
threads and sockets made by it belong there for good.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

CLONE_NEWUTS, CLONE_NEWNET = 0x04000000, 0x40000000
KINDS = {"net": CLONE_NEWNET, "uts": CLONE_NEWUTS}
TUN = Path("/dev/net/tun")
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
SIOCGIFFLAGS, SIOCSIFFLAGS, SIOCSIFADDR, SIOCSIFNETMASK, SIOCSIFTXQLEN = 0x8913, 0x8914, 0x8916, 0x891C, 0x8943
IFF_UP = 0x1
NETMASK = "255.255.255.0"
QUEUE_PACKETS = 5000
"""Packets that wait at a device for the switch; the usual 500 are lost while a busy machine does not run it."""

_libc = ctypes.CDLL(None, use_errno=True)


class Namespaces(NamedTuple):
    """Descriptors of a host.

    Attributes:
        device: its TUN device, non-blocking.
        net, uts: its namespaces, of the network and of the name.
    """

    device: int
    net: int
    uts: int


def _called(function: str, *arguments: int | bytes) -> None:
    if getattr(_libc, function)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")


def _present(kind: str) -> int:
    """Open the calling thread's namespace."""
    return os.open(f"/proc/thread-self/ns/{kind}", os.O_RDONLY)


@contextmanager
def _back_afterwards() -> Iterator[None]:
    """Bring the calling thread back to its present namespaces."""
    before = {kind: _present(kind) for kind in KINDS}
    try:
        yield
    finally:
        for kind, descriptor in before.items():
            _called("setns", descriptor, KINDS[kind])
            os.close(descriptor)


@contextmanager
def inside(host: Namespaces) -> Iterator[None]:
    """Move the calling thread to a host for a block."""
    with _back_afterwards():
        _called("setns", host.net, CLONE_NEWNET)
        _called("setns", host.uts, CLONE_NEWUTS)
        yield


def made(name: str, address: str) -> Namespaces:
    """Make a host of this name, with a loopback and a TUN device of this address.

    Raises:
        OSError: the system does not permit it (`missing` says what is missing).
    """
    with _back_afterwards():
        _called("unshare", CLONE_NEWNET | CLONE_NEWUTS)
        _called("sethostname", name.encode(), len(name.encode()))
        return Namespaces(_tun(address), _present("net"), _present("uts"))


def _tun(address: str) -> int:
    """Make the TUN device of the calling thread's network; return its descriptor."""
    device = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
    try:
        name = b"host0"
        fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name, IFF_TUN | IFF_NO_PI))
        with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as asking:
            _configure(asking, name, address)
    except BaseException:
        os.close(device)
        raise
    return device


def _configure(asking: socket.socket, name: bytes, address: str) -> None:
    for request, value in ((SIOCSIFADDR, address), (SIOCSIFNETMASK, NETMASK)):
        place = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(value))
        fcntl.ioctl(asking, request, struct.pack("16s16s8x", name, place))
    fcntl.ioctl(asking, SIOCSIFTXQLEN, struct.pack("16si20x", name, QUEUE_PACKETS))
    for device in (b"lo", name):
        (flags,) = struct.unpack_from("H", fcntl.ioctl(asking, SIOCGIFFLAGS, struct.pack("16s24x", device)), 16)
        fcntl.ioctl(asking, SIOCSIFFLAGS, struct.pack("16sH22x", device, flags | IFF_UP))


def missing() -> str:
    """Return what is missing here for hosts, in a sentence; empty if they can be made."""
    if sys.platform != "linux":
        return "hosts on one machine need Linux"
    try:
        descriptors = made("probe", "10.77.0.1")
    except OSError as error:
        if not TUN.exists():
            return f"hosts on one machine need {TUN} (modprobe tun; in a container: --device {TUN})"
        if error.errno in (errno.EPERM, errno.EACCES):
            return (
                "hosts on one machine need root (CAP_SYS_ADMIN), or the tests to be run by"
                f" `unshare --user --map-root-user`: {error}"
            )
        return f"hosts on one machine cannot be made: {error}"
    for descriptor in descriptors:
        os.close(descriptor)
    return ""
