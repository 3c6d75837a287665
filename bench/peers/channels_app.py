"""A plain Channels application as in the Channels tutorial: a consumer in a group over channels_redis, served by
daphne.

`/sub/NUMBER` over WebSocket joins the group; a POST to `/pub/NUMBER` sends its body to the group.
"""

from __future__ import annotations

import os
from typing import Any

from django.conf import settings

settings.configure(
    SECRET_KEY="bench",
    CHANNEL_LAYERS={
        "default": {
            "BACKEND": "channels_redis.core.RedisChannelLayer",
            "CONFIG": {"hosts": [os.environ.get("BENCH_REDIS_URL", "redis://127.0.0.1:6379")]},
        }
    },
)

import django  # noqa: E402

django.setup()

from channels.generic.http import AsyncHttpConsumer  # noqa: E402
from channels.generic.websocket import AsyncWebsocketConsumer  # noqa: E402
from channels.routing import ProtocolTypeRouter  # noqa: E402


def _group(scope: Any) -> str:
    return "s" + str(scope["path"]).rpartition("/")[2]


class Subscriber(AsyncWebsocketConsumer):  # type: ignore[misc]
    """One session of a group."""

    async def connect(self) -> None:
        await self.channel_layer.group_add(_group(self.scope), self.channel_name)
        await self.accept()

    async def disconnect(self, code: int) -> None:
        await self.channel_layer.group_discard(_group(self.scope), self.channel_name)

    async def event(self, message: dict[str, Any]) -> None:
        """Handle group messages of type `event`."""
        await self.send(text_data=message["data"])


class GroupPublisher(AsyncHttpConsumer):  # type: ignore[misc]
    """Sends a request's body to a group."""

    async def handle(self, body: bytes) -> None:
        await self.channel_layer.group_send(_group(self.scope), {"type": "event", "data": body.decode()})
        await self.send_response(201, b"")


application = ProtocolTypeRouter({"http": GroupPublisher.as_asgi(), "websocket": Subscriber.as_asgi()})
