"""Exchange with a service manager such as systemd: it passes a listening socket (sd_listen_fds(3)), and is notified of readiness and
the beginning of the stop (sd_notify(3)).

A socket that the service manager holds stays open while the service is exchanged: connections wait instead of being refused.
"""

from __future__ import annotations

import contextlib
import os
import socket
from typing import Any

from portal.supervisor.errors import StartError

FIRST_FD = 3
"""Number of the first descriptor that is passed. Source: sd_listen_fds(3)."""


def listener_passed(address: Any) -> socket.socket | None:
    """Return the listening socket that was passed to this process, None without one; children inherit nothing of it.

    Args:
        address: what HERALD_HOST and HERALD_PORT mean; the socket must listen there, because safe defaults are judged by them.

    Raises:
        StartError: several sockets were passed, or one that does not listen at `address`.
    """
    stated = {name: os.environ.pop(name, "") for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")}
    if stated["LISTEN_PID"] != str(os.getpid()) or stated["LISTEN_FDS"] in ("", "0"):
        return None
    if stated["LISTEN_FDS"] != "1":
        raise StartError(
            f"The service manager passed {stated['LISTEN_FDS']} sockets; pass one (one ListenStream= in the socket unit)."
        )
    os.set_inheritable(FIRST_FD, False)
    try:
        listener = socket.socket(fileno=FIRST_FD)
        listens = listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        at = listener.getsockname()
    except OSError as error:
        raise StartError(
            f"What the service manager passed is no socket ({error.strerror}); pass a listening one."
        ) from None
    if not listens or listener.type != socket.SOCK_STREAM or at[:2] != address[:2]:
        listener.close()
        raise StartError(
            f"The service manager passed a socket at {_shown(at)}, but HERALD_HOST and HERALD_PORT are {_shown(address)}; "
            "state the same address in the socket unit (ListenStream=) and in the settings."
        )
    listener.setblocking(False)
    return listener


def _shown(address: Any) -> str:
    if not isinstance(address, tuple):
        return repr(address)
    return f"[{address[0]}]:{address[1]}" if ":" in address[0] else f"{address[0]}:{address[1]}"


class ServiceManager:
    """The socket on which the service manager is notified; without one, nothing happens. Children do not inherit its address."""

    def __init__(self) -> None:
        self._address = os.environ.pop("NOTIFY_SOCKET", "")

    def notify(self, state: str) -> None:
        """Send a state such as `READY=1`. A service manager that has ended is no reason to stop."""
        if not self._address.startswith(("/", "@")):
            return
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender,
        ):
            sender.connect(self._address.replace("@", "\0", 1) if self._address[0] == "@" else self._address)
            sender.sendall(state.encode())
