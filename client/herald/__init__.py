"""Herald's client: publish events to rendezvous points, subscribe, and resume automatically without loss.

    from herald import Client, Gap

    async with Client("http://127.0.0.1:8000", token=token) as client:
        await client.publish("/localhost/weather/", {"celsius": 21.5})
        async for item in client.subscribe("/localhost/weather/", from_="earliest", state="weather.state"):
            print(item if isinstance(item, Gap) else item.data)

`herald.sync.Client` is the same for programs without asyncio.
"""

from herald.client import Client
from herald.durable import DurableSubscription, Pulled
from herald.errors import ClientClosed, Closed, ConnectionLost, HeraldError, InputError, Problem
from herald.events import Confirmation, Gap, Item, Received, event
from herald.leases import Lease
from herald.rendezvous_points import RendezvousPoint
from herald.rollover import Move
from herald.state import CursorStore, FileCursorStore, StateError
from herald.subscription import Attached, Subscription

__all__ = [
    "Attached",
    "Client",
    "ClientClosed",
    "Closed",
    "Confirmation",
    "ConnectionLost",
    "CursorStore",
    "DurableSubscription",
    "FileCursorStore",
    "Gap",
    "HeraldError",
    "InputError",
    "Item",
    "Lease",
    "Move",
    "Problem",
    "Pulled",
    "Received",
    "RendezvousPoint",
    "StateError",
    "Subscription",
    "event",
]
