"""One run, or the runs of one RP: what the log does for many RPs at once."""

from __future__ import annotations

from collections.abc import Mapping

from eventing.core.seals.seals import RUN_BYTES_MAX, RUN_EVENTS_MAX
from eventing.log.federated import ReceivedRun, StoredRun, Unsealed
from eventing.log.federated_bulk import (
    Incoming,
    OwnSeal,
    WantedRuns,
    receive_all,
    runs_after_all,
    seals_keep,
    unsealed_all,
)


def receive_run(run: Incoming) -> ReceivedRun:
    (found,) = receive_all([run])
    assert found is not None, "there is a log, and the feed is not its own"
    return found


def seal_keep(seal: OwnSeal) -> bool:
    return seals_keep([seal])[0]


def unsealed(rp: str, events_max: int = RUN_EVENTS_MAX, bytes_max: int = RUN_BYTES_MAX) -> Unsealed:
    (found,) = unsealed_all([rp], events_max, bytes_max)
    assert found is not None, "there is a log"
    return found


def runs_after(
    rp: str, vector: Mapping[str, int], own_key: str, events_max: int = RUN_EVENTS_MAX, bytes_max: int = RUN_BYTES_MAX
) -> list[StoredRun]:
    return runs_after_all([WantedRuns(rp, vector, own_key)], events_max, bytes_max)[0]
