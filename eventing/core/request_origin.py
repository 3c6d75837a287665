"""Where an act comes from: the client's address, the request's id, the surface. Set once per request, read by the audit
and by log lines, so that no function in between has to hand it on."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class Origin:
    """Where an act comes from.

    Attributes:
        address: the client's address, as far as it is known; empty for a command on the server's own machine.
        request_id: the id that the request has in log lines and in its answer's `X-Request-Id`; empty outside requests.
        via: the surface: `api`, `websocket`, `console`; `command` for everything that is no request.
        refusal_recorded: whether the audit has this request's refusal already, so that it is recorded once.
    """

    address: str = ""
    request_id: str = ""
    via: str = "command"
    refusal_recorded: bool = False


NO_REQUEST = Origin()

current_origin: ContextVar[Origin] = ContextVar("current_origin", default=NO_REQUEST)
"""The origin of what is being done now. Threads that work for a request (Django's, the database's) inherit it."""
