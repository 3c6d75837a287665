"""A durable worker: every event is handled, one that fails is handled again, and one that keeps failing is put aside.

    async with client.attach(subscription_id) as items:
        await work(items, handle, max_deliveries=5, on_dead=put_aside)

An acknowledgement covers everything before it, so an event that is to be handled again holds back those behind it: that keeps
their order, and is why there is a bound. The deliveries of an event are counted in this process: after a restart they are
counted anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, Awaitable, Callable

from herald.events import Gap, Item, Received

DELIVERIES_MAX = 5
DELAY_S = 1.0
DELAY_S_MAX = 60.0
log = logging.getLogger("herald")


class Nack(Exception):
    """Raised by a handler: the event is to be handled again.

    Args:
        delay_s: seconds until then; None for the worker's own delay.
    """

    def __init__(self, delay_s: float | None = None, reason: str = "") -> None:
        super().__init__(reason or "The handler asked for another delivery.")
        self.delay_s = delay_s


async def work(
    items: AsyncIterable[Item],
    handle: Callable[[Received], Awaitable[None]],
    *,
    max_deliveries: int = DELIVERIES_MAX,
    delay_s: float = DELAY_S,
    delay_s_max: float = DELAY_S_MAX,
    retry_on: type[Exception] | tuple[type[Exception], ...] = Exception,
    on_dead: Callable[[Received, Exception], Awaitable[None]] | None = None,
    on_gap: Callable[[Gap], Awaitable[None]] | None = None,
) -> None:
    """Handle the items of a subscription in their order, until it ends.

    Arguments:
        items: an attached durable subscription; or another one with a state.
        handle: does the work; returning is success.
        max_deliveries: how often one event is handled at most, the first time included; at least 1.
        delay_s: seconds before it is handled again, doubled each time up to `delay_s_max`; `Nack` states its own.
        retry_on: errors of the handler that another delivery may cure. Others end the worker, and the event is delivered
            again when it is started anew.
        on_dead: called with an event that failed `max_deliveries` times and its last error; once it returns, the event
            counts as processed. None: the event is logged.
        on_gap: called with a gap; None: it is logged.

    Raises ValueError for bounds that are none, and whatever the subscription, or a callback, raises.
    """
    errors = retried(max_deliveries, delay_s, retry_on)
    async for item in items:
        if isinstance(item, Gap):
            await _gap(item, on_gap)
            continue
        delay = delay_s
        for delivery in range(1, max_deliveries + 1):
            try:
                await handle(item)
                break
            except errors as error:
                if delivery == max_deliveries:
                    await _dead(item, error, delivery, on_dead)
                    break
                stated = error.delay_s if isinstance(error, Nack) else None
                await asyncio.sleep(delay if stated is None else stated)
                delay = min(delay * 2, delay_s_max)


def retried(
    max_deliveries: int, delay_s: float, retry_on: type[Exception] | tuple[type[Exception], ...]
) -> tuple[type[Exception], ...]:
    """Return the errors after which an event is handled again. Raises ValueError for bounds that are none."""
    if max_deliveries < 1 or delay_s < 0:
        raise ValueError("max_deliveries is at least 1, and delay_s at least 0")
    return (Nack, *retry_on) if isinstance(retry_on, tuple) else (Nack, retry_on)


def log_dead(item: Received, error: Exception, deliveries: int) -> None:
    """Log an event that is skipped."""
    log.error("The event %s of %s failed %d times and is skipped: %r", item.id, item.source, deliveries, error)


async def _gap(gap: Gap, on_gap: Callable[[Gap], Awaitable[None]] | None) -> None:
    if on_gap is None:
        log.warning("%s", gap)
    else:
        await on_gap(gap)


async def _dead(
    item: Received, error: Exception, deliveries: int, on_dead: Callable[[Received, Exception], Awaitable[None]] | None
) -> None:
    if on_dead is None:
        log_dead(item, error, deliveries)
    else:
        await on_dead(item, error)
