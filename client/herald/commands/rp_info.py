"""`herald rp info`: what happens at a rendezvous point: rates, readers, lag, replicas, alarms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from herald.commands.common import Command, Target, domain_options, history_text, run
from herald.commands.loads import Loads
from herald.commands.output import say_highlighted
from herald.commands.units import rate, size

SECONDS = 3.0
SHOWN = 10  # subscriptions, replicas and alarms of each kind


@click.command(cls=Command)
@click.argument("rp")
@click.option(
    "--seconds",
    type=click.FloatRange(0, 60),
    default=SECONDS,
    show_default=True,
    help="Longest time to measure rates; the gateways report each second.",
)
@domain_options
def info(target: Target, rp: str, seconds: float) -> None:
    """Show what happens at a rendezvous point: rates, readers, lag of durable subscriptions, replicas and alarms.

    Requires the right to administer it, or a viewer's token.
    """

    async def work() -> None:
        async with target.client() as client:
            found = await client.operating.snapshot(rp)
            state = found["state"]
            if state["rp"] is None:
                raise click.UsageError("The rendezvous point has ended.")
            async with Loads(client, f"{state['rp']['id']}.admin", state["load"]) as loads:
                await loads.wait(seconds)
                state = (await client.operating.snapshot(rp))["state"]
                waiting = await client.operating.subscriptions(rp=state["rp"]["id"], sort="lag", limit=SHOWN)
                document = _measured(state, loads, waiting["items"])
        if target.json:
            target.show(document, "")
            return
        for line, colour in _lines(document):
            say_highlighted(line, colour)

    run(work())


def _measured(state: Mapping[str, Any], loads: Loads, waiting: list[dict[str, Any]]) -> dict[str, Any]:
    names = ("events_in", "bytes_in", "deliveries", "bytes_out")
    return {
        "rp": state["rp"],
        "history": state["history"],
        "per_s": {name: round(loads.per_s(name), 3) for name in names},
        "readings": int(loads.total("readings")),
        "subscriptions": len(state["subscriptions"]),
        "furthest_behind": [{name: one.get(name) for name in ("id", "owner", "lag", "lost")} for one in waiting],
        "replicas": state["replicas"],
        "alarms": state["alarms"],
    }


def _lines(found: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    rp, held, per_s = found["rp"], found["history"], found["per_s"]
    lines: list[tuple[str, str | None]] = [
        _line("name", rp["name"] or "-"),
        _line("id", rp["id"]),
        _line("home", rp["home"]),
    ]
    if rp.get("paused"):
        lines.append(_line("paused", f"by {rp['paused']['by']} since {rp['paused']['at']}", "yellow"))
    lines.append(_line("bounds", history_text(rp["history"])))
    if held is not None:
        events = held["next"] - held["first"]
        about = f", offsets {held['first']:,} to {held['next'] - 1:,}" if events else ""
        lines.append(_line("history", f"{events:,} events, {size(held['bytes'])}{about}"))
    lines += [
        _line("in", f"{rate(per_s['events_in'])} events/s, {size(per_s['bytes_in'])}/s"),
        _line("out", f"{rate(per_s['deliveries'])} events/s, {size(per_s['bytes_out'])}/s"),
        _line("readers", f"{found['readings']:,} connected"),
    ]
    lines.append(_line("durable", f"{found['subscriptions']:,} subscriptions"))
    for one in found["furthest_behind"]:
        more = f", {one['lost']:,} of them lost" if one["lost"] else ""
        lines.append(
            _line("", f"{one['id']}  {one['lag']:,} behind{more}  {one['owner']}", "red" if one["lost"] else None)
        )
    if len(found["replicas"]) > 1:
        names = sorted(found["replicas"])
        lines.append(_line("replicas", ", ".join(names[:SHOWN]) + (" ..." if len(names) > SHOWN else "")))
    alarms = list(found["alarms"].values())
    for one in alarms[:SHOWN]:
        lines.append(
            _line("alarm", f"{one['severity']}: {one['detail']}", "red" if one["severity"] == "critical" else "yellow")
        )
    return lines if alarms else [*lines, _line("alarms", "none")]


def _line(name: str, text: str, colour: str | None = None) -> tuple[str, str | None]:
    return f"{name:9} {text}", colour
