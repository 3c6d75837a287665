"""Herald's client: publish events to rendezvous points, subscribe, and resume automatically without loss.

    from herald import Client, Gap

    async with Client("http://127.0.0.1:8000", token=token) as client:
        await client.publish("/localhost/weather/", {"celsius": 21.5})
        async for item in client.subscribe("/localhost/weather/", from_="earliest", state="weather.state"):
            print(item if isinstance(item, Gap) else item.data)

`herald.sync.Client` is the same for programs without asyncio.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from herald.client import Client
    from herald.cloud_event import Event
    from herald.durable import DurableSubscription, Pulled
    from herald.errors import ClientClosed, Closed, ConnectionLost, HeraldError, InputError, Problem
    from herald.events import Confirmation, Gap, Item, Received, event
    from herald.leases import Lease
    from herald.rendezvous_points import RendezvousPoint
    from herald.rollover import Move
    from herald.state import CursorStore, FileCursorStore, StateError
    from herald.statistics import Disconnected, Reconnected, Statistics
    from herald.subscription import Attached, Subscription
    from herald.worker import Nack, work

_MODULES = {
    "Attached": "subscription",
    "Client": "client",
    "ClientClosed": "errors",
    "Closed": "errors",
    "Confirmation": "events",
    "ConnectionLost": "errors",
    "CursorStore": "state",
    "Disconnected": "statistics",
    "DurableSubscription": "durable",
    "Event": "cloud_event",
    "FileCursorStore": "state",
    "Gap": "events",
    "HeraldError": "errors",
    "InputError": "errors",
    "Item": "events",
    "Lease": "leases",
    "Move": "rollover",
    "Nack": "worker",
    "Problem": "errors",
    "Pulled": "durable",
    "Received": "events",
    "Reconnected": "statistics",
    "RendezvousPoint": "rendezvous_points",
    "StateError": "state",
    "Statistics": "statistics",
    "Subscription": "subscription",
    "event": "events",
    "work": "worker",
}

__all__ = [
    "Attached",
    "Client",
    "ClientClosed",
    "Closed",
    "Confirmation",
    "ConnectionLost",
    "CursorStore",
    "Disconnected",
    "DurableSubscription",
    "Event",
    "FileCursorStore",
    "Gap",
    "HeraldError",
    "InputError",
    "Item",
    "Lease",
    "Move",
    "Nack",
    "Problem",
    "Pulled",
    "Received",
    "Reconnected",
    "RendezvousPoint",
    "StateError",
    "Statistics",
    "Subscription",
    "event",
    "work",
]


def __getattr__(name: str) -> Any:
    """Import what is asked for, and no more: the command starts in half the time (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
