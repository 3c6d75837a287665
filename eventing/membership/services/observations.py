"""Handing observations of other domains' conduct to the process that runs the overlay, which scores it."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from eventing.membership.rules.observations import Observation, observations_bytes
from eventing.store.errors import RedisError
from eventing.store.overlay_queues import OverlayBusy, OverlayNotRunning, overlay_observe

AT_ONCE_MAX = 200  # bound: observations in one entry of the overlay's inbox; the others are in the next one
log = logging.getLogger(__name__)


def observed(observations: Sequence[Observation]) -> None:
    """Hand observations over. Where no process runs the overlay, or it is busy, they are lost: nothing is scored then."""
    try:
        for first in range(0, len(observations), AT_ONCE_MAX):
            overlay_observe(observations_bytes(observations[first : first + AT_ONCE_MAX]))
    except OverlayNotRunning:
        return
    except (OverlayBusy, RedisError) as error:
        log.info("Observations of other domains' conduct are lost: %s", error or type(error).__name__)
