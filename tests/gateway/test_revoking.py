"""How the gateway looks after its sessions when tokens are revoked: in slices, each session once it is registered."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from eventing.access.rules.revocations import RevocationEntry, RevocationSet
from eventing.access.verification.revocations import revocations
from eventing.core.principals import Principal
from eventing.gateway.delivery import revocation
from eventing.gateway.delivery.revocation import Revoking

SESSIONS = 10_000
SWEEPS = 5


class FakeSession:
    def __init__(self, number: int) -> None:
        claims = {"iat": 1}
        self.principal: Principal | None = Principal(
            "here", f"s{number}", False, 9e9, claims, token_id=f"t{number}", key_id="k"
        )
        self.closed_at = 0.0

    def revoked(self) -> None:
        self.principal = None
        self.closed_at = time.monotonic()


class FakeHub:
    def __init__(self, sessions: list[FakeSession]) -> None:
        self.sessions = dict.fromkeys(sessions)


def entry(serial: int, kind: Any, value: str) -> RevocationEntry:
    return RevocationEntry(serial, kind, "here", value, 9e9 if kind == "subject" else 0, 9e9)


@pytest.fixture
async def looked_after(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Revoking, list[FakeSession]]]:
    """10,000 sessions, 5,000 revocations that are none of theirs, and nothing in SQL."""
    held = RevocationSet(entry(number, "token", f"other{number}") for number in range(5000))
    monkeypatch.setattr(revocations(), "_set", held)
    monkeypatch.setattr(revocations(), "refresh", lambda: False)
    sessions = [FakeSession(number) for number in range(SESSIONS)]
    made = Revoking(FakeHub(sessions))  # type: ignore[arg-type]
    made.start()
    yield made, sessions
    await made.close()


async def longest_stall(until: asyncio.Event) -> float:
    """The longest time in which the loop's processor time went to anything but this, until the event; seconds of CPU."""
    worst = 0.0
    while not until.is_set():
        before = time.thread_time()
        await asyncio.sleep(0)
        worst = max(worst, time.thread_time() - before)
    return worst


async def sweep(made: Revoking) -> float:
    """Have it look at all sessions some times; the longest stall of the loop in the best of them, without collections of garbage."""
    stalls = []
    gc.disable()
    try:
        for _ in range(SWEEPS):
            over = asyncio.Event()

            async def swept(over: asyncio.Event = over) -> None:
                await made._sweep()
                over.set()

            stall, _ = await asyncio.gather(longest_stall(over), swept())
            stalls.append(stall)
    finally:
        gc.enable()
    return min(stalls)


async def test_ten_thousand_sessions_are_looked_at_without_stalling_the_loop(
    looked_after: tuple[Revoking, list[FakeSession]],
) -> None:
    made, sessions = looked_after
    revocations()._set.apply(entry(6000, "subject", "s9999"))
    stall = await sweep(made)
    assert [session.closed_at > 0 for session in sessions] == [False] * 9999 + [True]
    assert stall < 0.01, f"{stall * 1000:.1f} ms"


async def test_ten_thousand_sessions_of_one_key_are_closed_in_slices(
    looked_after: tuple[Revoking, list[FakeSession]],
) -> None:
    made, sessions = looked_after
    turns = 0
    over = asyncio.Event()

    async def count() -> None:
        nonlocal turns
        while not over.is_set():
            turns += 1
            await asyncio.sleep(0)

    revocations()._set.apply(entry(6000, "key", "k"))
    counting = asyncio.create_task(count())
    await made._sweep()
    over.set()
    await counting
    assert all(session.closed_at for session in sessions)
    assert turns >= SESSIONS // revocation.CLOSED_AT_ONCE


async def test_a_session_that_is_registered_after_the_sweep_is_let_go_at_once(
    looked_after: tuple[Revoking, list[FakeSession]],
) -> None:
    made, _ = looked_after
    revocations()._set.apply(entry(6000, "token", "t1"))
    late, other = FakeSession(1), FakeSession(2)
    for session in (late, other):
        made.opened(session)  # type: ignore[arg-type]
    assert (late.principal, other.closed_at) == (None, 0.0)


async def test_a_waiting_pull_is_released_by_its_own_revocation_only(
    looked_after: tuple[Revoking, list[FakeSession]],
) -> None:
    made, sessions = looked_after
    released: list[str] = []
    one, two = sessions[1].principal, sessions[2].principal
    assert one is not None
    assert two is not None
    with made.waiting(one, lambda: released.append("one")), made.waiting(two, lambda: released.append("two")):
        revocations()._set.apply(entry(6000, "token", "t2"))
        await made._sweep()
    assert released == ["two"]
    await made._sweep()
    assert released == ["two"]


def test_asking_whether_a_token_is_revoked_costs_next_to_nothing() -> None:
    """Asked at every request: a hundredth of what a publish costs."""
    held = RevocationSet(entry(number, "token", f"other{number}") for number in range(20_000))
    principal = FakeSession(1).principal
    assert principal is not None
    best = float("inf")
    for _ in range(5):
        began = time.thread_time()
        for _ in range(10_000):
            held.covers(principal)
        best = min(best, (time.thread_time() - began) / 10_000)
    assert best < 10e-6, f"{best * 1e6:.2f} microseconds"
