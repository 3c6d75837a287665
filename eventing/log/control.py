"""The log for synchronous callers: services, selectors and workers. The gateway's hot path has its own (appender, reader)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import redis
from redis.exceptions import NoScriptError, ResponseError

from eventing.conf import config
from eventing.core.cloudevents import Event
from eventing.core.cursors import Cursor
from eventing.core.errors import InvalidCursor
from eventing.core.history import HistoryBounds
from eventing.core.positions import LogState
from eventing.log import keys, scripts
from eventing.log.connection import sync_client
from eventing.log.scripts import Appended, NoLog, Script


class Trimmed(NamedTuple):
    """How many events left the history since the last look, and the oldest offset that is still held."""

    removed: int
    first: int


@lru_cache(maxsize=4)
def _client(url: str) -> redis.Redis:
    return sync_client(url)


def client() -> redis.Redis:
    """This process's synchronous Redis client."""
    return _client(config().effective_redis_url)


def call(script: Script, args: list[Any]) -> Any:
    """Run `script`; loads it when the server does not know it. Raises NoLog."""
    try:
        try:
            return client().evalsha(script.sha, *args)
        except NoScriptError:
            return client().eval(script.text, *args)
    except ResponseError as error:
        if str(error).startswith("NOLOG"):
            raise NoLog from None
        raise


def ensure_log(rp: str, bounds: HistoryBounds) -> LogState:
    """Make the log with a new epoch if it is missing, and set its bounds. Returns its extent."""
    return scripts.log_state(call(scripts.CREATE, scripts.create_args(rp, bounds)))


def log_state(rp: str) -> LogState | None:
    """The log's extent; None if there is no log."""
    try:
        return scripts.log_state(call(scripts.READ, scripts.read_args(rp, 1, 0, 0)))
    except NoLog:
        return None


def log_states(rps: Sequence[str]) -> list[LogState | None]:
    """The extents of several logs, in one round trip."""
    if not rps:
        return []
    pipeline = client().pipeline(transaction=False)
    for rp in rps:
        pipeline.eval(scripts.READ.text, *scripts.read_args(rp, 1, 0, 0))
    answers = pipeline.execute(raise_on_error=False)
    states: list[LogState | None] = []
    for answer in answers:
        if isinstance(answer, ResponseError) and str(answer).startswith("NOLOG"):
            states.append(None)
        elif isinstance(answer, Exception):
            raise answer
        else:
            states.append(scripts.log_state(answer))
    return states


def delete_log(rp: str) -> None:
    """Remove the log, its ids and its subscriptions' cursors. Readers are told by `announce_change`."""
    client().delete(*keys.log_keys(rp), keys.cursors_key(rp))


def append(rp: str, events: Sequence[Event], bounds: HistoryBounds) -> Appended:
    """Append events, making the log if it is missing. Events whose (source, id) is known are not appended again."""
    offsets: list[int] = []
    duplicates: list[bool] = []
    epoch = ""
    for part in scripts.runs(events):
        args = scripts.append_args(rp, part, config().dedup_window_s, config().dedup_ids_max)
        try:
            answer = call(scripts.APPEND, args)
        except NoLog:
            ensure_log(rp, bounds)
            answer = call(scripts.APPEND, args)
        epoch, more_offsets, more_duplicates = scripts.appended(answer, len(part))
        offsets += more_offsets
        duplicates += more_duplicates
    return Appended(epoch, offsets, duplicates)


def read(rp: str, first: int, events_max: int, bytes_max: int) -> scripts.Run:
    """Read from offset `first`. Raises NoLog."""
    return scripts.run(call(scripts.READ, scripts.read_args(rp, first, events_max, bytes_max)))


def trim_log(rp: str) -> Trimmed:
    """Remove what the age bound no longer allows; says what left the history, by any bound, since the last call.

    The age is judged by Redis's clock, which also dated the events.
    """
    try:
        return Trimmed(*call(scripts.TRIM, [2, *keys.log_keys(rp)[:2]]))
    except NoLog:
        return Trimmed(0, 1)


def replicas_connected() -> int:
    """How many replicas the Redis in use has now."""
    info: dict[str, Any] = client().info("replication")
    return int(info.get("connected_slaves", 0))


def announce_change(rp: str) -> None:
    """Tell all gateways that the RP's descriptor changed or is gone."""
    client().publish(keys.DESCRIPTOR_CHANNEL, rp)


def announce_keys() -> None:
    """Tell all gateways that the domain's signing keys changed."""
    client().publish(keys.KEYS_CHANNEL, "")


def workers_present() -> None:
    """Note that a worker does its rounds; /readyz looks for it for WORKER_PRESENCE_S."""
    client().set(keys.WORKER_PRESENCE_KEY, "1", ex=keys.WORKER_PRESENCE_S)


def logs() -> Iterator[str]:
    """The RPs of all logs there are, in no order; for sweeping."""
    for key in client().scan_iter(match=keys.LOG_PATTERN.replace("{", "[{]").replace("}", "[}]"), count=500):
        yield keys.rp_of_meta_key(key.decode())


def subscription_cursor(rp: str, subscription: str) -> Cursor | None:
    """What the durable subscription has acknowledged; None if it has no cursor here."""
    text = client().hget(keys.cursors_key(rp), subscription)
    return Cursor.parse(text.decode()) if isinstance(text, bytes) else None


def subscription_cursor_set(rp: str, subscription: str, cursor: Cursor) -> None:
    """Put the subscription at `cursor`, wherever it was."""
    client().hset(keys.cursors_key(rp), subscription, str(cursor))


def subscription_forget(rp: str, subscription: str) -> None:
    """Drop the subscription's cursor."""
    client().hdel(keys.cursors_key(rp), subscription)


def acknowledge_args(rp: str, subscription: str, cursor: Cursor) -> list[Any]:
    """Key count, keys and arguments of ACKNOWLEDGE."""
    return [2, keys.meta_key(rp), keys.cursors_key(rp), subscription, cursor.epoch, cursor.offset]


def acknowledged(cursor: Cursor, answer: list[Any]) -> Cursor:
    """ACKNOWLEDGE's answer: the cursor now held. Raises InvalidCursor for one of another epoch or past the end."""
    verdict, value = answer[0].decode(), answer[1].decode()
    if verdict == "epoch":
        raise InvalidCursor(f"The log's epoch is {value} now; read again to get a cursor of it.", epoch=value)
    if verdict == "beyond":
        raise InvalidCursor(f"The last event has offset {value}; only what was delivered can be acknowledged.")
    return Cursor(cursor.epoch, int(value))
