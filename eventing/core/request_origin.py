"""Origin of a request: the client's address, the request's id, the surface. Set once per request and read by the audit
and by log lines, so that no function in between has to pass it on."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class Origin:
    """Origin of an act.

    Attributes:
        address: the client's address, if known; empty for a command on the server's own machine.
        request_id: id of the request in log lines and in the answer's `X-Request-Id`; empty outside requests.
        via: the surface: `api`, `websocket`, `console`; `command` for everything outside requests.
        refusal_recorded: whether the audit has recorded this request's refusal, so that it is recorded once.
    """

    address: str = ""
    request_id: str = ""
    via: str = "command"
    refusal_recorded: bool = False


NO_REQUEST = Origin()

current_origin: ContextVar[Origin] = ContextVar("current_origin", default=NO_REQUEST)
"""Origin of the current act. Threads that work for a request (Django's, the database's) inherit it."""
