"""The log for synchronous callers: services, selectors and workers. The gateway's hot path has its own modules
(appender, reader)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import redis
from redis.exceptions import ResponseError

from eventing.conf import config
from eventing.core.container import memoized
from eventing.core.errors import InvalidCursor
from eventing.core.events.cloudevents import Event
from eventing.core.events.cursors import Cursor
from eventing.core.events.history import HistoryBounds
from eventing.core.events.lineage import Lineage
from eventing.core.events.positions import LogState
from eventing.log import scripts
from eventing.log.scripts import Appended, NoLog
from eventing.store import keys
from eventing.store.client import Script, client, run_script, run_script_all
from eventing.store.connection import hasty_client, primaries_of

ANNOUNCE_S = 1.0  # for Redis to take an announcement of revocations


class Trimmed(NamedTuple):
    """Number of events that left the history since the last report, and the oldest offset still held."""

    removed: int
    first: int


class Cut(NamedTuple):
    """Result as of Trimmed, with the number of events that were removed on request."""

    removed: int
    first: int
    cut: int


def call(script: Script, args: list[Any]) -> Any:
    """Run `script` on a log. Raises NoLog."""
    try:
        return run_script(script, args)
    except ResponseError as error:
        if str(error).startswith("NOLOG"):
            raise NoLog from None
        raise


def logs_only(answers: Sequence[Any], *also: str) -> Iterator[Any]:
    """Return the answers of `run_script_all`, None where there is no log or the error begins with one of `also`.

    Raises every other error among them.
    """
    for answer in answers:
        if isinstance(answer, ResponseError) and str(answer).startswith(("NOLOG", *also)):
            yield None
        elif isinstance(answer, Exception):
            raise answer
        else:
            yield answer


def stored_at(places: Iterable[tuple[str, int]]) -> list[tuple[str, float | None]]:
    """Return the times at which the events at these offsets were stored, by RP, in order; None for trimmed ones. One round trip."""
    some = list(places)
    answers = run_script_all(scripts.STORED_AT, [[1, keys.log_keys(rp)[0], offset] for rp, offset in some])
    return [
        (rp, None if answer is None or isinstance(answer, Exception) else int(answer) / 1000)
        for (rp, _), answer in zip(some, answers, strict=True)
    ]


def offset_at(rp: str, moment_ms: int) -> scripts.TimePosition:
    """Return the place of a time, Unix milliseconds by Redis' clock, in the log. Raises NoLog."""
    return scripts.time_position(call(scripts.OFFSET_AT, scripts.offset_at_args(rp, moment_ms)))


def lineage(rp: str) -> Lineage:
    """Return the epochs of the log. One that another server wrote last is continued in a new epoch first. Raises NoLog."""
    return scripts.lineage(call(scripts.LINEAGE, scripts.lineage_args(rp, config().fenced)))


def continued(rp: str, cursor: Cursor, epoch: str) -> Cursor:
    """Return the position that a cursor denotes in the log, whose cursors have `epoch` now; as it is, if there is no log, or
    it does not continue the cursor's epoch that far."""
    if cursor.epoch == epoch:
        return cursor
    try:
        place, rewound = lineage(rp).continued(cursor)
    except NoLog:
        return cursor
    return place if rewound is None else cursor


def ensure_log(rp: str, bounds: HistoryBounds) -> LogState:
    """Make the log with a new epoch if it is missing, and set its bounds. Returns its extent."""
    return scripts.log_state(call(scripts.CREATE, scripts.create_args(rp, bounds)))


def log_state(rp: str) -> LogState | None:
    """Return the log's extent; None if there is no log."""
    try:
        return scripts.log_state(call(scripts.READ, scripts.read_args(rp, 1, 0, 0)))
    except NoLog:
        return None


def log_states(rps: Sequence[str]) -> list[LogState | None]:
    """Return the extents of several logs, in one round trip."""
    answers = run_script_all(scripts.READ, [scripts.read_args(rp, 1, 0, 0) for rp in rps])
    return [None if answer is None else scripts.log_state(answer) for answer in logs_only(answers)]


def delete_log(rp: str) -> None:
    """Remove the log, its ids, feeds and seals, and its subscriptions' cursors. `announce_change` notifies readers."""
    call(scripts.DELETE, [8, *keys.log_keys(rp), *keys.feed_keys(rp), keys.cursors_key(rp)])


def append(rp: str, events: Sequence[Event], bounds: HistoryBounds) -> Appended:
    """Append events, making the log if it is missing. Events with a known (source, id) are not appended again."""
    offsets: list[int] = []
    duplicates: list[bool] = []
    epoch = ""
    for part in scripts.runs(events):
        settings = config()
        args = scripts.append_args(rp, part, settings.dedup_window_s, settings.dedup_ids_max)
        try:
            answer = call(scripts.append_script(settings.fenced), args)
        except NoLog:
            ensure_log(rp, bounds)
            answer = call(scripts.append_script(settings.fenced), args)
        epoch, more_offsets, more_duplicates = scripts.appended(answer, len(part))
        offsets += more_offsets
        duplicates += more_duplicates
    return Appended(epoch, offsets, duplicates)


def read(rp: str, first: int, events_max: int, bytes_max: int) -> scripts.LogRun:
    """Read from offset `first`. Raises NoLog."""
    return scripts.run(call(scripts.READ, scripts.read_args(rp, first, events_max, bytes_max)))


def trim_log(rp: str) -> Trimmed:
    """Remove the events beyond the age bound; report the events that left the history, by any bound, since the last
    call.

    Redis's clock, which also dated the events, decides the age.
    """
    try:
        return Trimmed(*call(scripts.TRIM, scripts.trim_args(rp)))
    except NoLog:
        return Trimmed(0, 1)


def trim_log_before(rp: str, epoch: str, first: int) -> Cut:
    """Trim as `trim_log` does, and also remove the events before the offset `first`, unless the log's epoch is no
    longer `epoch`.

    Readers that have not received them get a gap, as for history that left by the bounds. Raises NoLog.
    """
    return Cut(*call(scripts.TRIM, scripts.trim_args(rp, epoch, first)))


def replicas_connected() -> int:
    """Count the replicas that are connected to the Redis in use; of several primaries, those of the one that has fewest."""
    found: list[Any] = [node.info("replication") for node in primaries_of(client())]
    return min(int(info.get("connected_slaves", 0)) for info in found)


def announce_change(rp: str) -> None:
    """Notify all gateways that the RP's descriptor changed or was removed."""
    client().publish(keys.DESCRIPTOR_CHANNEL, rp)


def announce_keys() -> None:
    """Notify all gateways that the domain's signing keys changed."""
    client().publish(keys.KEYS_CHANNEL, "")


@memoized(maxsize=4)
def _announcer(url: str) -> redis.Redis:
    return hasty_client(url, ANNOUNCE_S)


def announce_revocations(url: str) -> None:
    """Notify all gateways at this Redis that revocations changed. Raises redis.RedisError within about ANNOUNCE_S."""
    _announcer(url).publish(keys.REVOCATION_CHANNEL, "")


def logs() -> Iterator[str]:
    """Iterate over the RPs of all logs, in no particular order; for sweeping."""
    for key in client().scan_iter(match=keys.LOG_PATTERN.replace("{", "[{]").replace("}", "[}]"), count=500):
        yield keys.rp_of_meta_key(key.decode())


def subscription_cursor(rp: str, subscription: str) -> Cursor | None:
    """Return the position that the durable subscription has acknowledged; None if it has no cursor here."""
    text = client().hget(keys.cursors_key(rp), subscription)
    return Cursor.parse(text.decode()) if isinstance(text, bytes) else None


def subscription_counts(rps: Iterable[str]) -> list[int]:
    """Count the durable subscriptions with a cursor in each log, in one round trip."""
    pipeline = client().pipeline(transaction=False)
    for rp in rps:
        pipeline.hlen(keys.cursors_key(rp))
    return [int(count) for count in pipeline.execute()]


def events_max_all(rps: Iterable[str]) -> list[int | None]:
    """Return the most events that each log may hold, in one round trip; None where there is no log."""
    pipeline = client().pipeline(transaction=False)
    for rp in rps:
        pipeline.hget(keys.meta_key(rp), "m")
    return [None if found is None else int(found) for found in pipeline.execute()]


def subscription_cursor_set(rp: str, subscription: str, cursor: Cursor) -> None:
    """Set the subscription's cursor, whatever it was."""
    client().hset(keys.cursors_key(rp), subscription, str(cursor))


def subscription_forget(rp: str, subscription: str) -> None:
    """Remove the subscription's cursor, and the state of a shared one."""
    client().hdel(keys.cursors_key(rp), subscription)
    client().delete(keys.shared_key(rp, subscription))


def acknowledge_args(rp: str, subscription: str, cursor: Cursor, *, fenced: bool = False) -> list[Any]:
    """Make key count, keys and arguments of ACKNOWLEDGE; `fenced` as for scripts.append_args."""
    place = (cursor.epoch, cursor.offset, scripts.fence(fenced))
    return [2, keys.meta_key(rp), keys.cursors_key(rp), subscription, *place]


def verdict(answer: list[Any]) -> tuple[str, str]:
    """Decode ACKNOWLEDGE's answer: `ok` and the offset now held, `epoch` and the log's epoch, or `beyond` and the last offset."""
    return answer[0].decode(), answer[1].decode()


def refused_cursor(cursor: Cursor, epoch: str, last: int) -> InvalidCursor | None:
    """Make the refusal of a cursor in the log of this epoch and last offset; None if the cursor can be acknowledged."""
    if cursor.epoch != epoch:
        return _of_another_epoch(epoch)
    return _beyond(last) if cursor.offset > last else None


def _of_another_epoch(epoch: str) -> InvalidCursor:
    return InvalidCursor(f"The log's epoch is now {epoch}; read again to get a cursor of this epoch.", epoch=epoch)


def _beyond(last: int | str) -> InvalidCursor:
    return InvalidCursor(f"The last event has offset {last}; only delivered events can be acknowledged.")
