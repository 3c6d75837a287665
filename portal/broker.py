"""Connection of Celery's processes to their broker, made to survive any outage of the broker. What follows is about Redis.

Kombu's own transport fails in two ways when a connection is lost:

- A task that ends after the loss is acknowledged on its old channel, which has no connection any more. Kombu raises
  AttributeError there; that is no connection error, so the consumer ends with its whole process instead of connecting
  anew. Here the use of a closed channel is the connection error that it is, and an acknowledgement on it is dropped.
- The first try to connect again is followed by a pause of 2 s, and the pauses grow to 30 s. Here a domain's Redis is
  tried from RETRY_S up to RETRY_S_MAX, so that its processes work again as soon as Redis does.
"""

from __future__ import annotations

import logging
import ssl
from typing import Any

import kombu
from celery.app.amqp import AMQP
from kombu.transport import TRANSPORT_ALIASES, redis

from eventing.store.errors import RedisConnectionError

RETRY_S = 0.1
"""Seconds before the second try to connect; each further pause is RETRY_S_STEP longer."""
RETRY_S_STEP = 0.2
RETRY_S_MAX = 1.0
"""Seconds between two tries at most: a process works again this long after Redis does."""
PAUSES_S = {"interval_start": RETRY_S, "interval_step": RETRY_S_STEP, "interval_max": RETRY_S_MAX}
CONNECT_TIMEOUT_S = 2.0
ANSWER_TIMEOUT_S = 10
"""Seconds without an answer to a command before a connection is taken for dead; the queue is polled each second."""
HEALTH_CHECK_S = 5
"""Seconds between two checks that the connection which waits for tasks is alive."""

TRANSPORT_OPTIONS: dict[str, Any] = {
    "socket_connect_timeout": CONNECT_TIMEOUT_S,
    "socket_timeout": ANSWER_TIMEOUT_S,
    "socket_keepalive": True,
    "health_check_interval": HEALTH_CHECK_S,
    "priority_steps": [0],  # no task here has a priority: one list for each queue instead of four
}

SENTINEL_OPTIONS: dict[str, Any] = {
    "socket_connect_timeout": CONNECT_TIMEOUT_S,
    "socket_timeout": CONNECT_TIMEOUT_S,
    "retry": None,
}
"""Of connections to Sentinels, in redis-py's form: the next Sentinel is asked at once, where redis-py's default asks one that is away for
six seconds."""

VERIFIED: dict[str, Any] = {"ssl_cert_reqs": "required"}
"""TLS with a verified certificate, for kombu's Redis transport: without it any certificate is accepted. Parameters of the URL (`ssl_...`)
are first."""
VERIFIED_AMQP: dict[str, Any] = {"cert_reqs": ssl.CERT_REQUIRED, "server_hostname": None}
"""TLS with a verified certificate of the URL's host, for RabbitMQ: without it the certificate of any host is accepted."""

HEARTBEAT_S = 10
"""Seconds between two heartbeats with RabbitMQ; two that are missed end the connection."""
AMQP_OPTIONS: dict[str, Any] = {"connect_timeout": CONNECT_TIMEOUT_S, "confirm_publish": True}

logger = logging.getLogger(__name__)


def _is_closed(channel: Any) -> bool:
    """Return whether the connection of a channel was lost or closed."""
    return channel.connection is None or channel.connection.client is None


class QoS(redis.QoS):
    """Acknowledgements. An acknowledgement that arrives after the loss of its connection is dropped: every task is safe
    to run twice."""

    def ack(self, delivery_tag: str) -> None:
        """Acknowledge a task, unless its channel is closed."""
        if _is_closed(self.channel):
            logger.info("A task ended after its connection to Redis was lost; it is not acknowledged.")
        else:
            super().ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Reject a task, unless its channel is closed: Redis hands it out again after the visibility timeout."""
        if not _is_closed(self.channel):
            super().reject(delivery_tag, requeue=requeue)


class _ClosedIsLost:
    """Part of a channel: its use after the loss of its connection raises a connection error. Its client is made once for each pool of
    connections: kombu makes one for each command, which was a tenth of what a forwarder cost.
    """

    QoS: Any = QoS
    pool: Any
    _kept_client: Any = None

    def _connparams(self, asynchronous: bool = False) -> dict[str, Any]:
        if _is_closed(self):
            raise RedisConnectionError("The connection of this channel was closed.")
        found: dict[str, Any] = super()._connparams(asynchronous)  # type: ignore[misc]  # not in its stubs
        return found

    def _create_client(self, asynchronous: bool = False) -> Any:
        if asynchronous:  # holds a connection of its own
            return super()._create_client(asynchronous=True)  # type: ignore[misc]
        kept, pool = self._kept_client, self.pool
        if kept is None or kept.connection_pool is not pool:
            kept = self._kept_client = super()._create_client()  # type: ignore[misc]
        return kept


class BrokerChannel(_ClosedIsLost, redis.Channel):
    """Channel to a Redis."""


class SentinelBrokerChannel(_ClosedIsLost, redis.SentinelChannel):
    """Channel to the Redis that Sentinels name."""


class Transport(redis.Transport):
    """Kombu's transport with the channels of this module."""

    Channel = BrokerChannel


class SentinelTransport(redis.SentinelTransport):
    """The same by Sentinels."""

    Channel = SentinelBrokerChannel


class BrokerConnection(kombu.Connection):
    """A connection that is tried again after short pauses."""

    def ensure_connection(self, *arguments: Any, **options: Any) -> Any:
        """Connect. Arguments as in kombu, with shorter default pauses."""
        return super().ensure_connection(*arguments, **{**PAUSES_S, **options})


class Broker(AMQP):
    """Celery transport that creates these connections."""

    Connection = BrokerConnection


def transport_set() -> None:
    """Register the transport with kombu for every Redis URL of this process."""
    TRANSPORT_ALIASES.update(dict.fromkeys(("redis", "rediss"), "portal.broker:Transport"))
    TRANSPORT_ALIASES["sentinel"] = "portal.broker:SentinelTransport"
