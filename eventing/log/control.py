"""The log for synchronous callers: services, selectors and workers. The gateway's hot path has its own (appender, reader)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import redis
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, ResponseError
from redis.retry import Retry

from eventing.conf import config
from eventing.core.config import Config
from eventing.core.errors import InvalidCursor
from eventing.core.events.cloudevents import Event
from eventing.core.events.cursors import Cursor
from eventing.core.events.history import HistoryBounds
from eventing.core.events.positions import LogState
from eventing.log import scripts
from eventing.log.scripts import Appended, NoLog, Script
from eventing.store import keys
from eventing.store.connection import sync_client
from eventing.store.pipelined import evalsha_all

HASTE_S = 0.5  # a revocation is in force before Redis is back; its report can wait


class Trimmed(NamedTuple):
    """How many events left the history since the last look, and the oldest offset that is still held."""

    removed: int
    first: int


class Cut(NamedTuple):
    """As Trimmed, and how many of them went just now because somebody wanted it."""

    removed: int
    first: int
    cut: int


@lru_cache(maxsize=4)
def _client(settings: Config) -> redis.Redis:
    return sync_client(settings.effective_redis_url)


def client() -> redis.Redis:
    """This process's synchronous Redis client."""
    return _client(config())


@lru_cache(maxsize=4)
def _hasty_client(settings: Config) -> redis.Redis:
    return redis.Redis.from_url(
        settings.effective_redis_url,
        socket_timeout=HASTE_S,
        socket_connect_timeout=HASTE_S,
        retry=Retry(NoBackoff(), 0),
        protocol=2,
    )


def require_answer() -> None:
    """Raises redis.RedisError unless the data plane answers within HASTE_S: for whoever must not wait for it."""
    _hasty_client(config()).ping()


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


def call_all(script: Script, arguments: Sequence[Sequence[Any]]) -> list[Any]:
    """Run `script` with each of the arguments, in order, in one round trip; errors are among the answers."""
    if not arguments:
        return []
    answers = evalsha_all(client(), script.sha, arguments)
    missing = [at for at, answer in enumerate(answers) if isinstance(answer, NoScriptError)]
    if missing:  # none of them ran: the server does not know the script yet
        client().script_load(script.text)
        again = evalsha_all(client(), script.sha, [arguments[at] for at in missing])
        for at, answer in zip(missing, again, strict=True):
            answers[at] = answer
    return answers


def stored_at(places: Iterable[tuple[str, int]]) -> list[tuple[str, float | None]]:
    """When the events at these offsets were stored, by RP, in order; None for those that are gone. One round trip."""
    some = list(places)
    answers = call_all(scripts.STORED_AT, [[1, keys.log_keys(rp)[0], offset] for rp, offset in some])
    return [
        (rp, None if answer is None or isinstance(answer, Exception) else int(answer) / 1000)
        for (rp, _), answer in zip(some, answers, strict=True)
    ]


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
    answers = call_all(scripts.READ, [scripts.read_args(rp, 1, 0, 0) for rp in rps])
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
    """Remove the log, its ids, feeds and seals, its subscriptions' cursors. Readers are told by `announce_change`."""
    call(scripts.DELETE, [8, *keys.log_keys(rp), *keys.feed_keys(rp), keys.cursors_key(rp)])


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
        return Trimmed(*call(scripts.TRIM, scripts.trim_args(rp)))
    except NoLog:
        return Trimmed(0, 1)


def trim_log_before(rp: str, epoch: str, first: int) -> Cut:
    """As `trim_log`, and what is before the offset `first` goes too; not so if the log's epoch is another by now.

    Readers that are behind are told a gap, as of history that left by the bounds. Raises NoLog.
    """
    return Cut(*call(scripts.TRIM, scripts.trim_args(rp, epoch, first)))


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


def present(child: str) -> None:
    """Note that a process of this domain does its part; /readyz looks for it for PRESENCE_S."""
    client().set(keys.presence_key(child), "1", ex=keys.PRESENCE_S)


def logs() -> Iterator[str]:
    """The RPs of all logs there are, in no order; for sweeping."""
    for key in client().scan_iter(match=keys.LOG_PATTERN.replace("{", "[{]").replace("}", "[}]"), count=500):
        yield keys.rp_of_meta_key(key.decode())


def subscription_cursor(rp: str, subscription: str) -> Cursor | None:
    """What the durable subscription has acknowledged; None if it has no cursor here."""
    text = client().hget(keys.cursors_key(rp), subscription)
    return Cursor.parse(text.decode()) if isinstance(text, bytes) else None


def subscription_cursors(subscriptions: Sequence[tuple[str, str]]) -> list[Cursor | None]:
    """As `subscription_cursor` for many, by RP and id, in one round trip; those of one RP in one command."""
    of_rp: dict[str, list[str]] = {}
    for rp, subscription in subscriptions:
        of_rp.setdefault(rp, []).append(subscription)
    pipeline = client().pipeline(transaction=False)
    for rp, some in of_rp.items():
        pipeline.hmget(keys.cursors_key(rp), some)
    answers = zip(of_rp.items(), pipeline.execute(), strict=True)
    found = {(rp, one): text for (rp, some), texts in answers for one, text in zip(some, texts, strict=True)}
    held = (found[each] for each in subscriptions)
    return [Cursor.parse(text.decode()) if isinstance(text, bytes) else None for text in held]


def log_ends(rps: Iterable[str]) -> dict[str, tuple[str, int]]:
    """The epoch and the next offset of each log that there is, in one round trip."""
    wanted = list(rps)
    pipeline = client().pipeline(transaction=False)
    for rp in wanted:
        pipeline.hmget(keys.meta_key(rp), "e", "n")
    answers = zip(wanted, pipeline.execute(), strict=True)
    return {rp: (epoch.decode(), int(following)) for rp, (epoch, following) in answers if epoch is not None}


def subscription_cursor_set(rp: str, subscription: str, cursor: Cursor) -> None:
    """Put the subscription at `cursor`, wherever it was."""
    client().hset(keys.cursors_key(rp), subscription, str(cursor))


def subscription_forget(rp: str, subscription: str) -> None:
    """Drop the subscription's cursor, and what is kept of a shared one."""
    client().hdel(keys.cursors_key(rp), subscription)
    client().delete(keys.shared_key(rp, subscription))


def acknowledge_args(rp: str, subscription: str, cursor: Cursor) -> list[Any]:
    """Key count, keys and arguments of ACKNOWLEDGE."""
    return [2, keys.meta_key(rp), keys.cursors_key(rp), subscription, cursor.epoch, cursor.offset]


def verdict(answer: list[Any]) -> tuple[str, str]:
    """ACKNOWLEDGE's answer: `ok` and the offset now held, `epoch` and the log's epoch, or `beyond` and the last offset."""
    return answer[0].decode(), answer[1].decode()


def refused_cursor(cursor: Cursor, epoch: str, last: int) -> InvalidCursor | None:
    """Why a cursor cannot be acknowledged in the log of this epoch and last offset; None if it can."""
    if cursor.epoch != epoch:
        return _of_another_epoch(epoch)
    return _beyond(last) if cursor.offset > last else None


def _of_another_epoch(epoch: str) -> InvalidCursor:
    return InvalidCursor(f"The log's epoch is {epoch} now; read again to get a cursor of it.", epoch=epoch)


def _beyond(last: int | str) -> InvalidCursor:
    return InvalidCursor(f"The last event has offset {last}; only what was delivered can be acknowledged.")
