"""Lengths of the task queues, for the forwarder and for operators, whatever the broker is."""

from __future__ import annotations

import contextlib
from typing import Any

from kombu.exceptions import OperationalError

from eventing.conf import config
from eventing.store.errors import RedisError
from eventing.store.inspection import queue_length


class BrokerAway(Exception):
    """The broker does not answer."""


def waiting(queue: str) -> int:
    """Count the messages of a queue. Raises BrokerAway."""
    from portal.celery import app  # it sets Django up, so it is imported when it is needed first

    try:
        if not config().broker_url:
            return queue_length(f"{app.conf.broker_transport_options['global_keyprefix']}{queue}")
        pool: Any = app.pool  # its stubs take it for a pool of producers
        with pool.acquire(block=True) as connection:
            return _waiting_at(connection, queue)
    except (OperationalError, RedisError, OSError) as error:
        raise BrokerAway(str(error)) from error


def _waiting_at(connection: Any, queue: str) -> int:
    try:
        # A connection to RabbitMQ that was lost stays closed in the pool: its channel() raises AttributeError.
        connection.ensure_connection(max_retries=1)
        channel = connection.channel()
        try:
            return int(channel.queue_declare(queue=queue, passive=True).message_count)
        except connection.channel_errors:  # nothing was sent yet
            return 0
        finally:
            with contextlib.suppress(*connection.connection_errors):
                channel.close()
    except connection.connection_errors as error:  # those of RabbitMQ are no OSErrors
        raise BrokerAway(str(error)) from error
