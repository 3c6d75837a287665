"""The domain's one listening socket. The supervisor binds it, or takes the one that a service manager passes: a port in use is reported
at once, and gateways can restart without refused connections."""

from __future__ import annotations

import errno
import socket

import psutil

from eventing.core.config import Config
from portal.installation import run_command
from portal.supervisor.errors import StartError
from portal.supervisor.service_manager import listener_passed

BACKLOG = 4096
"""Connections waiting to be accepted; the kernel's net.core.somaxconn may lower it."""


def listen(config: Config) -> socket.socket:
    """Return a listening socket on HERALD_HOST and HERALD_PORT. Raises StartError when it cannot be opened."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            config.host, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, UnicodeError) as error:
        raise StartError(f"HERALD_HOST is {config.host!r}, which is no address of this machine ({error}).") from None
    passed = listener_passed(address)
    if passed is not None:
        return passed
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise StartError(_refused(config, error)) from None
    return listener


def _refused(config: Config, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {config.port} on {config.host} is taken by {port_owner(config.port)}; stop it, or choose another port "
            f"with HERALD_PORT (for example: HERALD_PORT={config.port % 65535 + 1} {run_command()})."
        )
    if error.errno == errno.EACCES:
        return f"Port {config.port} is reserved for root; choose one above 1023 with HERALD_PORT."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"HERALD_HOST is {config.host!r}, which is no address of this machine; 127.0.0.1 and 0.0.0.0 always are."
    return f"Port {config.port} on {config.host} cannot be opened ({error.strerror}); choose others with HERALD_HOST and HERALD_PORT."


def port_owner(port: int) -> str:
    """Return the program that listens on the port, where the system shows it: `nginx (pid 123)`, else `another
    program`."""
    try:
        for connection in psutil.net_connections("tcp"):
            address = connection.laddr
            if connection.status == psutil.CONN_LISTEN and address and address.port == port and connection.pid:
                return f"{psutil.Process(connection.pid).name()} (pid {connection.pid})"
    except psutil.Error:
        pass
    return "another program"
