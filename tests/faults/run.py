"""One run: a domain, load, faults drawn by a seed, and the history of what clients were told."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from demo.harness.servers import eventually
from tests.faults.clients import (
    Access,
    HttpPublisher,
    PullReader,
    Reader,
    WebSocketPublisher,
    WebSocketReader,
    read_log,
)
from tests.faults.domain import FaultyDomain
from tests.faults.history import History
from tests.faults.nemesis import Nemesis, schedule
from tests.gateway.server import ADMIN, Prepared

RPS = 5
SETTLED_WITHIN_S = 120.0
"""After the faults: publishers are answered, and readers get to the end."""


@dataclass(frozen=True)
class Settings:
    """Settings of a run.

    Attributes:
        level: acknowledgement level of the RPs.
        seconds: of load and faults.
        replicas: of each of three primaries.
        faults: those that may happen; empty: all.
        rate: events a second, about.
        cuts, older, clustered: as of FaultyDomain.
    """

    level: str = "replicated:all"
    seconds: float = 60.0
    replicas: int = 1
    gateways: int = 2
    faults: Sequence[str] = ()
    rate: float = 60.0
    cuts: bool = True
    older: Path | None = None
    clustered: bool = True


class Stage(NamedTuple):
    """What faults are done to."""

    domain: FaultyDomain
    history: History
    rps: list[str]


Faults = Callable[[Stage], None]
"""Does faults, in a thread, and undoes them."""


def domain_of(folder: Path, prepared: Prepared, settings: Settings) -> FaultyDomain:
    """Make the domain that these settings ask for."""
    folder.mkdir(parents=True, exist_ok=True)
    return FaultyDomain(
        folder,
        prepared,
        replicas=settings.replicas,
        gateways=settings.gateways,
        cuts=settings.cuts,
        older=settings.older,
        clustered=settings.clustered,
    )


def run(domain: FaultyDomain, path: Path, seed: int, settings: Settings) -> None:
    """Run one seed, and write its history. The domain is whole afterwards, if it can be."""

    def drawn(stage: Stage) -> None:
        nemesis = Nemesis(stage.domain, stage.history)
        faults = settings.faults or sorted(nemesis.faults)
        nemesis.run(schedule(seed, settings.seconds, faults))

    run_faults(domain, path, seed, settings, drawn)


def run_faults(domain: FaultyDomain, path: Path, seed: int, settings: Settings, faults: Faults) -> None:
    """Run a domain under load and these faults, and write its history."""
    domain.wait_whole()
    with contextlib.closing(History(path)) as history:
        asyncio.run(_run(domain, history, seed, settings, faults))


async def _run(domain: FaultyDomain, history: History, seed: int, settings: Settings, faults: Faults) -> None:
    rps = await asyncio.to_thread(domain.create_rps, settings.level, RPS)
    levels = dict.fromkeys(rps, settings.level)
    history.add("run", "run", seed=seed, seconds=settings.seconds, levels=levels, promised=[settings.level])
    subscriptions = {rp: await asyncio.to_thread(domain.create_subscription, rp) for rp in rps[:3]}
    token = domain.gateways.token(ADMIN, admin=True)
    access = Access(domain.urls, token, history, random.Random(seed))
    readers: list[WebSocketReader | PullReader] = [
        WebSocketReader(access, "r1", rps),
        WebSocketReader(access, "r2", rps),
        WebSocketReader(access, "d1", rps[:2], {rp: subscriptions[rp] for rp in rps[:2]}),
        PullReader(access, "d2", rps[2:3], {rps[2]: subscriptions[rps[2]]}),
        *(PullReader(access, f"q{number}", [rp]) for number, rp in enumerate(rps[3:], 1)),
    ]
    each = settings.rate / (2 * RPS)
    by_http = [HttpPublisher(access, f"p{number}", rp, each / 1.5) for number, rp in enumerate(rps, 1)]
    by_websocket = [WebSocketPublisher(access, f"w{number}", rps, settings.rate / 4) for number in (1, 2)]
    reading = [asyncio.create_task(reader.run()) for reader in readers]
    publishers: list[HttpPublisher | WebSocketPublisher] = [*by_http, *by_websocket]
    publishing = [asyncio.create_task(one.run()) for one in publishers]
    try:
        await asyncio.gather(asyncio.to_thread(faults, Stage(domain, history, rps)), asyncio.sleep(settings.seconds))
        access.over.set()
        history.add("nemesis", "over", "info")
        await _bounded(asyncio.gather(*publishing))
        await _bounded(asyncio.gather(*(publisher.publish(1) for publisher in by_http)))
        ends = await asyncio.wait_for(read_log(access, rps), SETTLED_WITHIN_S)
        with contextlib.suppress(AssertionError):  # the checker finds who is not there
            await _read_up(readers, ends)
        for task in reading:
            if task.done():
                task.result()
    finally:
        for task in (*reading, *publishing):
            task.cancel()
        await asyncio.gather(*reading, *publishing, return_exceptions=True)


async def _bounded(work: Awaitable[object]) -> None:
    """Wait for something; what did not happen in time is found by the checker."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(work, SETTLED_WITHIN_S)


async def _read_up(readers: Sequence[Reader], ends: dict[str, int]) -> None:
    async def have() -> bool:
        return all(reader.at(rp) >= ends[rp] for reader in readers for rp in reader.rps)

    await eventually(have, SETTLED_WITHIN_S, every_s=0.05, about="readers are at the ends of the logs")
