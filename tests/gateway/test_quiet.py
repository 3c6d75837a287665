"""A gateway's pauses: as long as ever in the profile standard and under load, longer only where nothing happens and nobody watches."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest

from eventing.core.config import Config
from eventing.gateway import quiet
from eventing.gateway.quiet import Quiet
from eventing.telemetry.totals import totals

PERIOD_S = 0.05


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet, "QUIET_S", 30.0)
    monkeypatch.setattr(quiet, "LOOK_S", 0.01)


def made(profile: str = "auto", gateways: int = 1, readers: int = 0) -> Quiet:
    hub: Any = SimpleNamespace(administrative={"domain.admin": SimpleNamespace(readers=readers)})
    return Quiet(Config.from_env({"HERALD_PROFILE": profile, "HERALD_GATEWAYS": str(gateways)}), hub)


async def paused_s(found: Quiet) -> float:
    began = time.monotonic()
    await found.pause(PERIOD_S)
    return time.monotonic() - began


@pytest.mark.parametrize(("profile", "gateways"), [("auto", 1), ("standard", 1), ("small", 2)])
async def test_the_period_holds_in_other_profiles_and_beside_other_gateways(profile: str, gateways: int) -> None:
    found = made(profile, gateways)
    for _ in range(3):
        assert await paused_s(found) < 10


async def test_the_period_holds_while_somebody_watches() -> None:
    found = made("small", readers=1)
    for _ in range(3):
        assert await paused_s(found) < 10


async def test_the_period_holds_while_events_are_published() -> None:
    found = made("small")
    for _ in range(3):
        totals().publishes += 1
        assert await paused_s(found) < 10


async def test_a_pause_where_nothing_happens_is_long_until_somebody_begins_to_read() -> None:
    found = made("small")
    for _ in range(2):  # the first look finds totals that it has not seen, the second one the same
        await found.pause(PERIOD_S)
    pauses = [asyncio.ensure_future(found.pause(PERIOD_S)) for _ in range(2)]
    done, _ = await asyncio.wait(pauses, timeout=1.0)
    assert not done
    found.stir()
    assert await asyncio.wait_for(asyncio.gather(*pauses), 10) == [0.0, 0.0]


async def test_a_pause_says_how_late_it_ended() -> None:
    found = made()
    pause = asyncio.ensure_future(found.pause(PERIOD_S))
    await asyncio.sleep(0)
    time.sleep(4 * PERIOD_S)  # noqa: ASYNC251 - holds the event loop, as code that computes does
    assert await pause >= 2 * PERIOD_S
