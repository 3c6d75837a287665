"""Notices to the deliverer that something changed. A lost one is found by its sweep."""

from __future__ import annotations

import logging

from eventing.store.errors import RedisError
from eventing.store.push_attempts import push_notify

logger = logging.getLogger(__name__)


def deliverer_notify(subscription_id: str) -> None:
    """Have the deliverer read what is stored about a subscription."""
    try:
        push_notify(subscription_id)
    except RedisError as error:
        logger.warning("The deliverer was not notified of %s; its sweep finds it: %s", subscription_id, error)
