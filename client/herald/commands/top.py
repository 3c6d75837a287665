"""`herald top`: what a domain does now, anew each second."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from herald.commands.common import Command, Target, domain_options, run
from herald.commands.loads import Loads, hot, number, per_s
from herald.commands.output import on_terminal, say, screen
from herald.commands.rp_names import RpNames
from herald.commands.units import rate, size

FIRST_S = 3.0  # bound: wait for the first samples; what is known is shown then
SNAPSHOT_EACH = 10  # refreshes between two looks at counts, alarms and Redis
ROWS_MAX = 20


@click.command(cls=Command, short_help="Show what the domain does now, anew each second.")
@click.option(
    "--interval-s", type=click.FloatRange(1, 3600), default=1.0, show_default=True, help="Seconds between two pictures."
)
@click.option("--count", type=click.IntRange(min=1), help="Stop after this many pictures. Default: until Ctrl-C.")
@domain_options
def command(target: Target, interval_s: float, count: int | None) -> None:
    """Show the sessions, rates and gateways of the domain and its busiest rendezvous points, until Ctrl-C.

    On a terminal the picture is replaced; into a file or a pipe each follows the one before. Requires a viewer's token.
    """

    async def work() -> None:
        async with target.client() as client:
            state = (await client.operating.snapshot())["state"]
            async with Loads(client, "domain.admin", state["gateways"]) as loads:
                await loads.wait(FIRST_S)
                names, shown = RpNames(client), 0
                while True:
                    await _show(target, names, state, loads)
                    shown += 1
                    if shown == count:
                        return
                    await loads.pause(interval_s)
                    if shown % SNAPSHOT_EACH == 0:
                        state = (await client.operating.snapshot())["state"]
                        loads.keep(state["gateways"])

    run(work())


async def _show(target: Target, names: RpNames, state: Mapping[str, Any], loads: Loads) -> None:
    found = _picture(state, loads)
    if target.json:
        target.show(found, "")
        return
    await names.look_up(one["rp"] for one in found["rps"])
    lines = _lines(found, names)
    if on_terminal():
        screen(lines)
    else:
        say(*lines, "")


def _picture(state: Mapping[str, Any], loads: Loads) -> dict[str, Any]:
    counters = ("events_in", "bytes_in", "deliveries", "bytes_out", "publishes", "refused")
    return {
        "domain": state["domain"]["name"],
        "counts": state["counts"],
        "alarms": [{"severity": one["severity"], "detail": one["detail"]} for one in state["alarms"].values()],
        "redis": state["redis"],
        "sessions": int(loads.total("sessions")),
        "per_s": {name: round(loads.per_s(name), 3) for name in counters},
        "gateways": dict(sorted(loads.samples.items())),
        "rps": hot(loads.samples.values())[:ROWS_MAX],
    }


def _lines(found: Mapping[str, Any], names: RpNames) -> list[str]:
    per, counts, redis = found["per_s"], found["counts"], found["redis"] or {}
    lines = [
        f"{found['domain']}: {found['sessions']:,} sessions, {counts['rps']:,} rendezvous points, "
        f"{counts['subscriptions']:,} durable subscriptions, {_alarms(found['alarms'])}",
        f"in {rate(per['events_in'])} events/s, {size(per['bytes_in'])}/s    out {rate(per['deliveries'])} events/s, "
        f"{size(per['bytes_out'])}/s    refused {rate(per['refused'])}/s",
    ]
    if redis:
        lines.append(f"Redis {size(number(redis, 'used_bytes'))}, {number(redis, 'ops_s'):,.0f} commands/s")
    lines += ["", f"{'GATEWAY':14} {'SESSIONS':>8} {'IN/S':>8} {'OUT/S':>8} {'CPU':>6} {'MEMORY':>10} {'LOOP LAG':>9}"]
    for name, one in found["gateways"].items():
        lines.append(
            f"{name:14.14} {number(one, 'sessions'):>8,.0f} {rate(per_s(one, 'events_in')):>8} "
            f"{rate(per_s(one, 'deliveries')):>8} {100 * per_s(one, 'cpu_s'):>4.0f} % "
            f"{size(number(one, 'rss_bytes')):>10} {number(one, 'lag_ms'):>6.1f} ms"
        )
    lines += ["", f"{'IN/S':>8} {'OUT/S':>8} {'READERS':>8}  RENDEZVOUS POINT"]
    lines += [
        f"{rate(one['in_per_s']):>8} {rate(one['out_per_s']):>8} {one['readings']:>8,}  {names[one['rp']]}"
        for one in found["rps"]
    ]
    return lines if found["rps"] else [*lines, "nothing is published or read at the moment"]


def _alarms(alarms: list[dict[str, Any]]) -> str:
    if not alarms:
        return "no alarm"
    worst = sum(one["severity"] == "critical" for one in alarms)
    return f"{len(alarms)} alarms" + (f", {worst} of them critical" if worst else "") + " (herald alarm list)"
