"""A durable worker for programs without asyncio: `herald.sync.work`, as herald.worker does it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from herald.events import Gap, Item, Received
from herald.worker import DELAY_S, DELAY_S_MAX, DELIVERIES_MAX, Nack, log, log_dead, retried


def work(
    items: Iterable[Item],
    handle: Callable[[Received], None],
    *,
    max_deliveries: int = DELIVERIES_MAX,
    delay_s: float = DELAY_S,
    delay_s_max: float = DELAY_S_MAX,
    retry_on: type[Exception] | tuple[type[Exception], ...] = Exception,
    on_dead: Callable[[Received, Exception], None] | None = None,
    on_gap: Callable[[Gap], None] | None = None,
) -> None:
    """Handle the items of a subscription in their order, until it ends; see herald.work for the arguments.

        with client.attach(subscription_id) as items:
            work(items, handle, max_deliveries=5, on_dead=put_aside)

    Raises ValueError for bounds that are none, and whatever the subscription, or a callback, raises.
    """
    errors = retried(max_deliveries, delay_s, retry_on)
    for item in items:
        if isinstance(item, Gap):
            (on_gap or _log_gap)(item)
            continue
        delay = delay_s
        for delivery in range(1, max_deliveries + 1):
            try:
                handle(item)
                break
            except errors as error:
                if delivery == max_deliveries:
                    if on_dead is None:
                        log_dead(item, error, delivery)
                    else:
                        on_dead(item, error)
                    break
                stated = error.delay_s if isinstance(error, Nack) else None
                time.sleep(delay if stated is None else stated)
                delay = min(delay * 2, delay_s_max)


def _log_gap(gap: Gap) -> None:
    log.warning("%s", gap)
