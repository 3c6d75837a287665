"""`herald monitor`: publish this host's load as events, on rendezvous points of its own."""

from __future__ import annotations

import asyncio
import time
from functools import partial

import click

from herald.client import Client
from herald.commands.common import Command, Target, domain_options, run
from herald.commands.output import document, note
from herald.commands.progress import ProgressLine
from herald.errors import HeraldError, Problem
from herald.events import Confirmation, event
from herald.lease_keeper import LeaseKeeper
from herald.samples import KINDS, MachineSampler, Sample, host_segment

LEASE_S = 3600
HISTORY = {"max_events": 3600}  # an hour of seconds
MISSING = frozenset({"not-found", "gone"})


@click.command(cls=Command, short_help="Publish this host's load.")
@click.option(
    "--interval-s", type=click.FloatRange(min=0.05), default=1.0, show_default=True, help="Seconds between samples."
)
@click.option("--name", metavar="HOST", help="Name of this host. Default: its host name.")
@click.option("--count", type=click.IntRange(min=1), help="Stop after this many samples of each kind.")
@domain_options
def command(target: Target, interval_s: float, name: str | None, count: int | None) -> None:
    """Publish this host's CPU, memory, disk and network load until Ctrl-C.

    The rendezvous points are /DOMAIN/hosts/HOST/cpu/, .../memory/, .../disk/ and .../network/; they are created if
    missing, and expire an hour after this command has ended.
    """

    async def work() -> None:
        async with target.client() as client:
            domain = (await client.about())["domain"]
            base = f"/{domain}/hosts/{host_segment(name)}/"
            async with LeaseKeeper(client, lease_s=LEASE_S, history=HISTORY) as lease_keeper:
                monitor = _Monitor(target, client, lease_keeper, base)
                await monitor.run(interval_s, count)

    run(work())


class _Monitor:
    def __init__(self, target: Target, client: Client, lease_keeper: LeaseKeeper, base: str) -> None:
        self._target = target
        self._client = client
        self._lease_keeper = lease_keeper
        self._base = base
        self._missing = set(KINDS)
        self._error: HeraldError | None = None

    async def run(self, interval_s: float, count: int | None) -> None:
        sampler = MachineSampler()
        await self._ensure()
        note(f"publishing to {self._base}{{{','.join(KINDS)}}}/ every {interval_s:g} s; Ctrl-C ends it")
        progress = ProgressLine(shown=not self._target.json)
        due, taken = time.monotonic(), 0
        with progress:
            while count is None or taken < count:
                due = max(due + interval_s, time.monotonic())  # samples missed in a stall are left out
                await asyncio.sleep(due - time.monotonic())
                if self._missing:
                    await self._ensure()
                samples = sampler.take()
                for kind in KINDS:
                    await self._publish(kind, samples[kind])
                taken += 1
                progress.show(partial(_summary, samples, taken))
                if self._error is not None:
                    raise self._error
            await self._client.flush()
        if self._error is not None:
            raise self._error

    async def _ensure(self) -> None:
        for kind in sorted(self._missing):
            await self._lease_keeper.ensure(
                f"{self._base}{kind}/", f"{kind} of {self._base.rstrip('/').rpartition('/')[2]}"
            )
        self._missing.clear()

    async def _publish(self, kind: str, sample: Sample) -> None:
        if self._target.json:
            document({"rp": f"{self._base}{kind}/", "data": sample})
        one = event(sample, type=f"herald.host.{kind}", source=self._base)
        answer = await self._client.submit(f"{self._base}{kind}/", [one])
        answer.add_done_callback(lambda done: self._confirmed(kind, done))

    def _confirmed(self, kind: str, done: asyncio.Future[list[Confirmation]]) -> None:
        error = None if done.cancelled() else done.exception()
        if isinstance(error, Problem) and error.code in MISSING:
            self._missing.add(kind)  # its lease expired while this host slept: created again at the next sample
        elif isinstance(error, HeraldError):
            self._error = self._error or error


def _summary(samples: dict[str, Sample], taken: int) -> str:
    network = samples["network"]
    return (
        f"{taken} samples  cpu {samples['cpu']['used_percent']:.0f} %  memory {samples['memory']['used_percent']:.0f} "
        "%  "
        f"disk {samples['disk']['used_percent']:.0f} %  in {network.get('received_bytes_per_s', 0) / 1024:.0f} KiB/s"
    )
