"""New epochs of logs that were restored from a backup: every event stays, and no number is given twice.

A restored log ends where the backup was made; what was numbered later has been seen by readers and peers. So each log is
continued in a new epoch before anything is appended. Offsets stay. The earlier epochs and their last offsets are kept in
the log's head, so that a cursor of one of them up to there denotes the same event as ever; one beyond it denotes an event
that the restored domain does not have.

A log that was sealed has a feed that left the domain. It is kept as other domains' feeds are, with its seals, and peers
return what they hold beyond it; the new own feed begins with the events that no seal covers.
"""

from __future__ import annotations

from typing import Any

from redis.exceptions import ResponseError

from eventing.conf import config
from eventing.core.events.feeds import FEEDS_MAX, Feed
from eventing.log import federated, scripts
from eventing.log.control import call
from eventing.log.scripts import NoLog
from eventing.store import keys
from eventing.store.client import client

COPIED_AT_ONCE = 2000  # entries of one call, for which Redis serves nobody else


def lineage_begin(rp: str) -> str:
    """Continue the log in a new epoch; return it. Raises NoLog.

    For a log that nobody reads or writes. A log with FEEDS_MAX feeds cannot have one more: it begins anew with its own
    unsealed events (federated.renumber), and peers return the others.
    """
    was, sealed = _head(rp)
    feed = Feed(config().domain, was).key
    copy = keys.log_copy_key(rp)
    log, meta, *_ = keys.log_keys(rp)
    client().delete(copy)
    offset = 1 if sealed else 0
    while offset:
        offset = int(call(scripts.LINEAGE_COPY, [3, log, meta, copy, feed, offset, COPIED_AT_ONCE]))
    epoch = scripts.new_epoch()
    every_key = (log, meta, keys.feeds_key(rp), keys.vectors_key(rp), keys.cursors_key(rp), copy)
    arguments = (was, epoch, feed, config().domain, FEEDS_MAX - 1)
    try:
        call(scripts.LINEAGE_BEGIN, [7, *every_key, keys.seals_key(rp, feed), *arguments])
    except ResponseError as error:
        if not str(error).startswith("FULL"):
            raise
        client().delete(copy)
        return federated.renumber(rp, was, carry_after_ms=0)
    return epoch


def _head(rp: str) -> tuple[str, int]:
    found: Any = client().hmget(keys.meta_key(rp), ["e", "q"])
    epoch, sealed = found
    if epoch is None:
        raise NoLog
    return str(epoch.decode()), int(sealed or 0)
