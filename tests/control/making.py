"""What the control plane's tests make by hand: events, and work done at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection

from eventing.core.errors import HeraldError
from eventing.core.events.cloudevents import Event


def events_made(count: int, begin: int = 0) -> list[Event]:
    """Small events with ids from `begin`."""
    body = b'{"specversion":"1.0","id":"%d","source":"/t","type":"t"}'
    return [Event(source="/t", id=str(n), type="t", body=body % n) for n in range(begin, begin + count)]


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Results of `work(0..count-1)`, run at once on connections of their own; a refusal is its result."""

    def run(number: int) -> Any:
        try:
            return work(number)
        except HeraldError as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))
