"""replication/services/sealing.py: own runs are signed once and linked, and no number is used twice, whatever is put back from a copy."""

from __future__ import annotations

import dataclasses
import shutil
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from threading import Barrier, Semaphore
from typing import Any

import pytest
from django.utils import timezone

from eventing.access.models import DomainKey
from eventing.access.selectors.keys import signing_key
from eventing.access.services.keys import ensure_domain_key
from eventing.conf import config
from eventing.core import merkle, signing
from eventing.core.events.history import HistoryBounds
from eventing.core.seals import seals
from eventing.core.signing import Signed
from eventing.log import control, federated_bulk
from eventing.log.federated import Unsealed
from eventing.log.federated_bulk import OwnSeal
from eventing.peering.selectors.domain_documents import domain_keys
from eventing.replication.models import SealHead
from eventing.replication.selectors.seals import epoch_heads
from eventing.replication.services import sealing, sealing_turns
from eventing.replication.services.sealing import (
    head_checked,
    heads_checked,
    low_water_mark_own,
    own_seal_seen,
    seal_heads_purge,
    seal_own,
    seals_next,
    seals_own,
)
from eventing.replication.services.sealing_turns import SealingTurns
from eventing.rps.services.rendezvous_points import rendezvous_point_create
from eventing.store.client import client as redis_client
from eventing.store.sealing_holds import held_since
from tests.log.runs import seal_keep
from tests.planes import in_threads, principal, types_at
from tests.replication.own_logs import backup, decode, head, kept, new_log, own_key, publish, put_back, read, state
from tests.store.redis_process import RedisProcess


@pytest.fixture(autouse=True)
def _stores(transactional_db: None, redis_url: str) -> None:
    redis_client().flushdb()


@pytest.fixture
def own_redis(tmp_path: Path, settings: Any) -> Iterator[RedisProcess]:
    """A Redis of this test's own, which the domain uses."""
    process = RedisProcess(tmp_path / "own")
    process.start()
    settings.HERALD = dataclasses.replace(settings.HERALD, redis_url=process.url)
    yield process
    redis_client().close()
    process.kill()


def signed_by_us(statement: Signed) -> bool:
    at_ms = seals.seal_read(statement).sealed_at_ms
    return seals.signed_by(signing.SEAL, statement, at_ms, domain_keys(config().domain))


def chain_is_whole(rp: str) -> None:
    """Every own seal kept is ours, covers exactly the log's events, and follows the one before it; SQL has the last."""
    previous: Signed | None = None
    for stored in kept(rp):
        statement, seal = read(stored)
        assert signed_by_us(statement)
        assert seals.chained(seal, previous)
        assert merkle.root(stored.leaves) == seal.root
        assert (seal.first, seal.last) == (stored.first, stored.last)
        held = control.read(rp, stored.o, stored.z - stored.o + 1, 1 << 26)
        gone = stored.leaves[: len(stored.leaves) - merkle.HASH_BYTES * len(held.events)]
        assert seals.run_verified(seal, held.events, gone)
        previous = statement
    assert previous is not None
    assert bytes(head(rp).digest) == seals.digest(previous)


def test_what_is_unsealed_is_sealed_in_runs_of_at_most_1000_and_linked() -> None:
    rp = new_log()
    publish(rp, 2500)
    assert seal_own(rp) == 2500
    assert [(seal.first, seal.last) for seal in kept(rp)] == [(1, 1000), (1001, 2000), (2001, 2500)]
    chain_is_whole(rp)
    publish(rp, 3)
    assert seals_own([rp]) == {rp: 2503}
    assert kept(rp)[-1].first == 2501
    chain_is_whole(rp)


def test_nothing_new_is_not_sealed_again() -> None:
    rp = new_log()
    assert seal_own(rp) == 0
    assert not SealHead.objects.exists()
    publish(rp, 5)
    seal_own(rp)
    before = head(rp).statement
    assert seal_own(rp) == 5
    assert bytes(head(rp).statement) == bytes(before)


def test_a_run_has_at_most_a_mebibyte_and_a_larger_event_is_sealed_alone() -> None:
    rp = new_log()
    publish(rp, 5, size=300_000)
    publish(rp, 1, size=1_200_000)
    assert seal_own(rp) == 6
    assert [(seal.first, seal.last) for seal in kept(rp)] == [(1, 3), (4, 5), (6, 6)]
    chain_is_whole(rp)


def test_many_rps_are_sealed_at_once_and_one_without_a_log_is_left_out() -> None:
    rps = [new_log() for _ in range(100)]
    for number, rp in enumerate(rps):
        publish(rp, number % 4)
    assert seals_own([*rps, "z" * 26]) == {rp: number % 4 for number, rp in enumerate(rps)}
    for rp in rps[1:4]:
        chain_is_whole(rp)
    assert SealHead.objects.count() == 75


def test_what_left_the_history_unsealed_is_left_out_and_said_in_a_floor() -> None:
    bounds = HistoryBounds(10, 1 << 20, None)
    rp = new_log(bounds)
    publish(rp, 4, bounds=bounds)
    seal_own(rp)
    assert low_water_mark_own(rp) is None
    publish(rp, 30, bounds=bounds)
    assert seal_own(rp) == 34
    statement, seal = read(kept(rp)[-1])
    assert (seal.first, seal.last) == (25, 34)
    assert seal.previous  # linked to the seal of 1 to 4, over the gap
    floor = low_water_mark_own(rp)
    assert floor is not None
    said = seals.low_water_mark_read(floor)
    assert (said.rp, said.feed, said.first) == (rp, seal.feed, 25)
    assert seals.signed_by(signing.LOW_WATER_MARK, floor, said.stated_at_ms, domain_keys(config().domain))
    assert signed_by_us(statement)


def test_several_processes_that_seal_at_once_tell_one_story(monkeypatch: pytest.MonkeyPatch) -> None:
    rp = new_log()
    told: list[Signed] = []
    moved = sealing._heads_moved

    def noting(runs: Any, now: Any) -> Any:
        won = moved(runs, now)
        told.extend(run.statement for run in won)
        return won

    monkeypatch.setattr(sealing, "_heads_moved", noting)
    for _ in range(5):
        publish(rp, 7)
        assert set(in_threads(4, lambda _: seal_own(rp))) == {state(rp).own}
    chain_is_whole(rp)
    assert not any(seals.equivocate(one, other) for one in told for other in told)
    assert len({one.payload for one in told}) == len(kept(rp))


def test_a_seal_is_not_older_than_the_key_that_is_made_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rp = new_log()
    publish(rp, 1)
    make = ensure_domain_key

    def slowly() -> str:
        time.sleep(1.001)  # the next second begins
        return make()

    DomainKey.objects.all().delete()
    monkeypatch.setattr(sealing, "ensure_domain_key", slowly)
    seal_own(rp)
    chain_is_whole(rp)


def test_a_crash_between_sql_and_the_log_is_made_good_with_the_same_seal(monkeypatch: pytest.MonkeyPatch) -> None:
    rp = new_log()
    publish(rp, 5)
    epoch = state(rp).epoch
    with monkeypatch.context() as crash:
        crash.setattr(federated_bulk, "seals_keep", _crashes)
        with pytest.raises(KeyboardInterrupt):
            seal_own(rp)
    statement = bytes(head(rp).statement)
    assert state(rp).sealed == 0
    publish(rp, 4)
    assert seal_own(rp) == 9
    assert state(rp).epoch == epoch
    assert kept(rp)[0].seal == statement
    assert [(seal.first, seal.last) for seal in kept(rp)] == [(1, 5), (6, 9)]
    chain_is_whole(rp)


def test_a_crash_is_made_good_though_most_of_the_run_has_left_the_history(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = HistoryBounds(10, 1 << 20, None)
    rp = new_log(bounds)
    publish(rp, 8, bounds=bounds)
    epoch = state(rp).epoch
    with monkeypatch.context() as crash:
        crash.setattr(federated_bulk, "seals_keep", _crashes)
        with pytest.raises(KeyboardInterrupt):
            seal_own(rp)
    publish(rp, 9, bounds=bounds)  # 8 to 17 are held
    assert seal_own(rp) == 17
    assert state(rp).epoch == epoch
    assert [(seal.first, seal.last) for seal in kept(rp)] == [(1, 8), (9, 17)]
    chain_is_whole(rp)


def test_a_seal_that_somebody_puts_into_the_log_while_we_look_is_no_reason_for_a_new_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rp = new_log()
    publish(rp, 6)
    waiting: list[Any] = []
    with monkeypatch.context() as slow:
        slow.setattr(federated_bulk, "seals_keep", lambda seals: waiting.extend(seals) or [True])
        slow.setattr(sealing, "ROUNDS_MAX", 1)
        seal_own(rp)  # SQL has the seal, its process has not come to the log yet
    publish(rp, 6)
    epoch, look = state(rp).epoch, federated_bulk.unsealed_all

    def look_late(*arguments: Any) -> list[Unsealed | None]:
        found = look(*arguments)
        if waiting:
            federated_bulk.seals_keep([waiting.pop()])
        return found

    monkeypatch.setattr(federated_bulk, "unsealed_all", look_late)
    assert seal_own(rp) == 12
    assert not waiting
    assert state(rp).epoch == epoch
    chain_is_whole(rp)


def _crashes(seals: Any) -> list[bool]:
    raise KeyboardInterrupt


def test_redis_restored_from_an_older_backup_begins_a_new_epoch_and_never_reuses_a_number(
    own_redis: RedisProcess, tmp_path: Path
) -> None:
    row = rendezvous_point_create(principal=principal("ann"))
    rp, data = row.id, tmp_path / "own" / "redis"
    publish(rp, 3)
    seal_own(rp)
    own_redis.kill()
    shutil.copytree(data, tmp_path / "copy", ignore=shutil.ignore_patterns("*.sock"))
    own_redis.start()
    was = state(rp).epoch
    publish(rp, 4)
    seal_own(rp)
    told = {(was, n): body for n, body in enumerate(control.read(rp, 1, 100, 1 << 20).events, 1)}
    own_redis.kill()
    shutil.rmtree(data)
    shutil.copytree(tmp_path / "copy", data)
    own_redis.start()
    assert (state(rp).epoch, state(rp).own) == (was, 3)

    assert heads_checked() == 1
    now = state(rp)
    assert now.epoch != was
    assert (now.first, now.next, now.own, now.sealed) == (1, 1, 0, 0)
    publish(rp, 2)
    assert seal_own(rp) == 2
    chain_is_whole(rp)
    seal = read(kept(rp)[0])[1]
    assert (seal.epoch, seal.previous) == (now.epoch, b"")
    bodies = control.read(rp, 1, 100, 1 << 20).events
    assert not {(now.epoch, n) for n in range(1, len(bodies) + 1)} & set(told)
    assert types_at(f"{rp}.admin").count("epoch.renewed") == 1
    assert types_at("domain.admin").count("epoch.renewed") == 1
    assert heads_checked() == 0


def test_a_restored_log_that_grew_past_its_head_before_anybody_looked_is_found_all_the_same() -> None:
    rp = new_log()
    publish(rp, 3)
    seal_own(rp)
    saved = backup(rp)
    publish(rp, 4)
    seal_own(rp)
    was = state(rp).epoch
    put_back(rp, saved)
    publish(rp, 20)  # 4 to 7 are other events now than those that left
    acknowledged = control.read(rp, 4, 100, 1 << 20).events
    assert seal_own(rp) == 20
    assert state(rp).epoch != was
    assert control.read(rp, 1, 100, 1 << 20).events == acknowledged  # their publishers were answered: none is dropped
    publish(rp, 1)
    assert seal_own(rp) == 21
    chain_is_whole(rp)


def test_a_restored_log_whose_history_moved_on_altogether_is_found() -> None:
    bounds = HistoryBounds(5, 1 << 20, None)
    rp = new_log(bounds)
    publish(rp, 3, bounds=bounds)
    seal_own(rp)
    saved = backup(rp)
    publish(rp, 4, bounds=bounds)
    seal_own(rp)
    was = state(rp).epoch
    put_back(rp, saved)
    publish(rp, 50, bounds=bounds)
    assert head_checked(rp)
    assert state(rp).epoch != was


def test_an_epoch_that_ended_never_comes_back() -> None:
    rp = new_log()
    publish(rp, 3)
    seal_own(rp)
    first, saved = state(rp).epoch, backup(rp)
    publish(rp, 1)
    seal_own(rp)
    put_back(rp, saved)
    assert head_checked(rp)
    second = state(rp).epoch
    publish(rp, 2)
    seal_own(rp)
    put_back(rp, saved)
    assert head_checked(rp)
    assert state(rp).epoch not in (first, second)
    assert not head_checked(rp)


def test_of_several_processes_that_find_a_stale_log_one_begins_the_epoch() -> None:
    rp = new_log()
    publish(rp, 3)
    saved = backup(rp)
    seal_own(rp)
    put_back(rp, {key: value for key, value in saved.items() if not key.endswith(b":log")} | _log_of(saved, rp, 1))
    was = state(rp).epoch
    in_threads(4, lambda _: seals_own([rp]))
    epoch = state(rp).epoch
    assert epoch != was
    publish(rp, 2)
    assert set(in_threads(4, lambda _: seal_own(rp))) == {2}
    assert state(rp).epoch == epoch


def _log_of(saved: dict[bytes, bytes], rp: str, own: int) -> dict[bytes, bytes]:
    """The backup of a log of the same epoch with `own` events only."""
    put_back(rp, saved)
    meta = f"herald:{{{rp}}}:meta"
    redis_client().xtrim(f"herald:{{{rp}}}:log", maxlen=0, approximate=False)
    redis_client().hset(meta, "n", own + 1)
    return backup(rp)


def test_sql_restored_from_an_older_backup_takes_over_the_logs_seals() -> None:
    rp = new_log()
    publish(rp, 3)
    seal_own(rp)
    old = list(SealHead.objects.filter(rp=rp).values())
    publish(rp, 4)
    seal_own(rp)
    epoch = state(rp).epoch
    for rows in (old, []):
        SealHead.objects.filter(rp=rp).delete()
        SealHead.objects.bulk_create([SealHead(**row) for row in rows])
        publish(rp, 2)
        seal_own(rp)
        assert state(rp).epoch == epoch
        chain_is_whole(rp)


def test_a_seal_made_between_the_reads_of_head_and_log_is_no_restored_database(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rp = new_log()
    publish(rp, 3)
    seal_own(rp)
    before = epoch_heads([rp])
    publish(rp, 2)
    seal_own(rp)
    monkeypatch.setattr("eventing.replication.services.sealing.epoch_heads", lambda rps: before)
    with caplog.at_level("WARNING"):
        assert not head_checked(rp)
    assert caplog.records == []
    SealHead.objects.filter(rp=rp).update(last=3)
    assert not head_checked(rp)
    assert "restored from a copy" in caplog.text


def test_a_seal_in_the_log_that_is_not_ours_is_not_taken_over() -> None:
    rp = new_log()
    publish(rp, 3)
    seal_own(rp)
    was, stored = state(rp).epoch, kept(rp)[0]
    statement = decode(stored.seal)
    forged = Signed(statement.payload, statement.kid, bytes(64))
    SealHead.objects.all().delete()
    redis_client().delete(f"herald:{{{rp}}}:seals:{own_key(rp)}")
    redis_client().hset(f"herald:{{{rp}}}:meta", "q", 0)
    seal_keep(OwnSeal(rp, own_key(rp), 1, 3, sealing._encode(forged), stored.leaves, stored.o, stored.z))
    assert head_checked(rp)
    assert state(rp).epoch != was


def _whole_domain_put_back() -> tuple[str, str, Signed]:
    """An RP whose log and head are as of three events, though seven were sealed; the seal of 4 to 7, as peers hold it."""
    rp = new_log()
    publish(rp, 3)
    seal_own(rp)
    saved, rows = backup(rp), list(SealHead.objects.values())
    publish(rp, 4)
    seal_own(rp)
    shown, was = decode(kept(rp)[-1].seal), state(rp).epoch
    put_back(rp, saved)
    SealHead.objects.all().delete()
    SealHead.objects.bulk_create([SealHead(**row) for row in rows])
    return rp, was, shown


def test_sql_and_redis_restored_together_are_told_by_a_peer_that_shows_our_own_seal() -> None:
    rp, was, shown = _whole_domain_put_back()
    assert heads_checked() == 0  # by itself the domain cannot know
    assert own_seal_seen(rp, shown)
    now = state(rp)
    assert (now.epoch != was, now.own) == (True, 0)
    assert SealHead.objects.get(rp=rp, epoch=was).last == 7
    assert not own_seal_seen(rp, shown)
    publish(rp, 1)
    assert seal_own(rp) == 1
    assert state(rp).epoch == now.epoch


def test_a_peer_that_shows_our_own_seal_of_other_events_than_we_sealed_since_ends_the_epoch() -> None:
    rp, was, shown = _whole_domain_put_back()
    publish(rp, 9)  # not sealed: 4 to 12, where peers hold other events as 4 to 7
    new = control.read(rp, 4, 100, 1 << 20).events
    assert own_seal_seen(rp, shown)
    assert state(rp).epoch != was
    assert control.read(rp, 1, 100, 1 << 20).events == new
    rp, was, shown = _whole_domain_put_back()
    publish(rp, 9)
    seal_own(rp)
    assert own_seal_seen(rp, shown)
    assert state(rp).epoch != was


def test_a_liar_cannot_make_us_begin_a_new_epoch() -> None:
    rp, was, shown = _whole_domain_put_back()
    seal = seals.seal_read(shown)
    forged = Signed(shown.payload, shown.kid, bytes(64))
    known = decode(kept(rp)[0].seal)
    key = signing_key()
    assert key is not None
    other_rp = seals.seal_make(
        rp="z" * 26,
        feed=seal.feed,
        first=9,
        leaves=bytes(32),
        previous=b"",
        sealed_at_ms=seal.sealed_at_ms,
        private_jwk=key,
    )
    for statement in (forged, known, other_rp, Signed(b"no seal", "k", bytes(64))):
        assert not own_seal_seen(rp, statement)
    assert state(rp).epoch == was


def test_the_check_at_the_start_looks_at_all_logs_and_at_none_that_is_gone() -> None:
    rps = [new_log() for _ in range(6)]
    for rp in rps:
        publish(rp, 2)
    saved = {rp: backup(rp) for rp in rps}
    seals_own(rps)
    for rp in rps:
        publish(rp, 2)
    seals_own(rps)
    put_back(rps[1], saved[rps[1]])
    put_back(rps[4], saved[rps[4]])
    control.delete_log(rps[5])
    before = {rp: state(rp).epoch for rp in rps[:5]}
    assert heads_checked() == 2
    assert [rp for rp in rps[:5] if state(rp).epoch != before[rp]] == [rps[1], rps[4]]


def test_the_heads_of_an_rp_that_is_gone_are_forgotten_after_a_month() -> None:
    there = rendezvous_point_create(principal=principal("ann")).id
    gone = new_log()
    for rp in (there, gone):
        publish(rp, 1)
        seal_own(rp)
    now = timezone.now()
    assert seal_heads_purge(now=now + timedelta(days=29)) == 0
    assert seal_heads_purge(now=now + timedelta(days=31)) == 1
    assert [row.rp for row in SealHead.objects.all()] == [there]


def test_another_key_seals_on_and_the_chain_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    from eventing.access.services.keys import key_rotate

    rp = new_log()
    publish(rp, 2)
    seal_own(rp)
    key_rotate(principal=principal("root", admin=True), signs_after_s=0)
    publish(rp, 2)
    seal_own(rp)
    kids = {decode(stored.seal).kid for stored in kept(rp)}
    assert len(kids) == 2
    chain_is_whole(rp)


def test_a_round_ends_though_publishers_go_on_and_the_next_run_is_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    rp = new_log()
    publish(rp, 3)
    moved = sealing._heads_moved

    def while_publishing(*args: Any) -> Any:
        publish(rp, 7)
        return moved(*args)

    monkeypatch.setattr(sealing, "_heads_moved", while_publishing)
    done = seals_next([rp])
    assert (done.heads[rp].sealed, done.more) == (3, [])
    assert seals_next([rp]).heads[rp].sealed == 10
    assert seal_own(rp) == 17  # it would never end if it waited for what comes meanwhile
    assert [(seal.first, seal.last) for seal in kept(rp)] == [(1, 3), (4, 10), (11, 17)]
    chain_is_whole(rp)


def test_a_round_says_where_more_is_left_than_one_run_covers() -> None:
    rp, small = new_log(), new_log()
    publish(rp, 1001)
    publish(small, 1)
    done = seals_next([rp, small])
    assert done.more == [rp]
    assert {one: head.sealed for one, head in done.heads.items()} == {rp: 1000, small: 1}


def test_threads_that_need_the_same_seal_have_it_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rp = new_log()
    publish(rp, 3)
    unsealed, wait = federated_bulk.unsealed_all, SealingTurns.wait
    found_unsealed, waiting = Barrier(4, timeout=30), Semaphore(0)
    signed: list[Any] = []

    def found(rps: Any) -> Any:
        found_unsealed.wait()
        return held_since(rps)

    def waits(turns: SealingTurns, rps: Any) -> None:
        waiting.release()
        wait(turns, rps)

    def signs(*arguments: Any) -> Any:
        signed.append(arguments)
        assert all(waiting.acquire(timeout=30) for _ in range(3))
        return unsealed(*arguments)

    monkeypatch.setattr(sealing, "held_since", found)
    monkeypatch.setattr(SealingTurns, "wait", waits)
    monkeypatch.setattr(federated_bulk, "unsealed_all", signs)
    done = in_threads(4, lambda _: seals_next([rp]))
    assert [(one.heads[rp].sealed, one.more) for one in done] == [(3, [])] * 4
    assert len(signed) == 1
    chain_is_whole(rp)


def test_a_thread_that_waits_for_anothers_seal_gives_up_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing_turns, "WAIT_S", 0.05)
    rp = new_log()
    publish(rp, 3)
    with sealing._turns().taken([rp]):
        done = seals_next([rp])
    assert (done.heads[rp].sealed, done.more) == (0, [rp])
    assert seals_next([rp]).heads[rp].sealed == 3
