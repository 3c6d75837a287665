"""`herald plan`: the planners of placement and routes: what they decided and why, dry runs, approval, switches and bounds, invitations."""

from __future__ import annotations

from typing import Any

import click

from herald.commands.common import Command, CommandGroup, Target, domain_options, run
from herald.commands.output import note

_MODES = click.Choice(["off", "advise", "apply", "inherit"])
_WHOM = click.Choice(["trusted-peers", "peers", "named", "nobody"])


@click.group(
    cls=CommandGroup,
    short_help="Plan replicas and routes: show, next, explain, approve, routes, off.",
    aliases={"apply": "approve"},
)
def command() -> None:
    """Show what the planners decided and why, run them dry, approve or reject, and set switches and bounds.

    Reading requires a viewer's token, changes an operator's.
    """


@command.command(cls=Command)
@click.argument("rp", required=False)
@domain_options
def show(target: Target, rp: str | None) -> None:
    """Show the planner and the decisions that are open; with RP its bounds and latest decisions."""

    async def work() -> None:
        async with target.client() as client:
            found = await client.plan.show(rp)
            if rp is not None:
                page = await client.plan.decisions(rp=rp, limit=20)
                shown = {**found, "decisions": page["items"]}
                target.show(shown, lambda _: [_bounds(found), *(_decision(one) for one in page["items"])])
                return
            target.show(found, _plan)

    run(work())


@command.command(name="next", cls=Command)
@domain_options
def next_(target: Target) -> None:
    """Run the planner of placement dry: what it would do now. Nothing is recorded or changed."""

    async def work() -> None:
        async with target.client() as client:
            target.show(await client.plan.preview(), _preview)

    run(work())


@command.command(cls=Command)
@click.argument("rp", required=False)
@click.option(
    "--mode", type=_MODES, help="off: none is planned. advise: shown, without effect. apply: in force. inherit."
)
@click.option(
    "--target", "aim", type=click.FloatRange(0.0, 0.999999, min_open=True), help="Run dry with this target reliability."
)
@domain_options
def routes(target: Target, rp: str | None, mode: str | None, aim: float | None) -> None:
    """Show the planner of routes, with RP as a dry run; --mode switches it, for RP or for the whole domain."""
    if aim is not None and (rp is None or mode is not None):
        raise click.UsageError("--target is for a dry run of one RP: herald plan routes RP --target 0.9999.")

    async def work() -> None:
        async with target.client() as client:
            if mode is not None:
                found = await client.plan.routes_switch(rp, mode=None if mode == "inherit" else mode)
                target.show(found, lambda one: f"routes    {rp or 'domain'}  mode {one['mode_in_force']}")
            elif rp is not None:
                target.show(await client.plan.routes_preview(rp, target=aim), _routes_preview)
            else:
                target.show(await client.plan.routes(), _routes)

    run(work())


@command.command(cls=Command)
@click.argument("decision", metavar="ID")
@domain_options
def explain(target: Target, decision: str) -> None:
    """Explain the decision ID: its reason, the numbers that it rests on, and what was done at each domain."""

    async def work() -> None:
        async with target.client() as client:
            target.show(await client.plan.decision(decision), _explained)

    run(work())


@command.command(cls=Command)
@click.argument("decision", metavar="ID")
@domain_options
def approve(target: Target, decision: str) -> None:
    """Approve the proposal ID: it is carried out within seconds. To apply all by themselves: herald plan set --mode apply."""

    async def work() -> None:
        async with target.client() as client:
            target.show(await client.plan.approve(decision), _decision)

    run(work())


@command.command(cls=Command)
@click.argument("decision", metavar="ID")
@click.option("--note", "text", default="", help="A note for people.")
@domain_options
def reject(target: Target, decision: str, text: str) -> None:
    """Reject the decision ID, unless it is under way already."""

    async def work() -> None:
        async with target.client() as client:
            target.show(await client.plan.reject(decision, note=text), _decision)

    run(work())


@command.command(cls=Command)
@click.argument("rp", required=False)
@domain_options
def off(target: Target, rp: str | None) -> None:
    """Switch the planner off, for RP or for the whole domain. On again: herald plan set --mode advise."""

    async def work() -> None:
        async with target.client() as client:
            await client.plan.bound(rp, mode="off")
        target.show({"rp": rp, "mode": "off"}, f"off for {rp or 'the domain'}")

    run(work())


@command.command(name="set", cls=Command)
@click.argument("rp", required=False)
@click.option(
    "--mode", type=_MODES, help="advise: propose only. apply: carry out. inherit: as the domain, or its setting."
)
@click.option("--replicas-max", type=click.IntRange(0, 48), help="Most replicas at other domains.")
@click.option("--histories", type=click.IntRange(1, 9), help="Histories that share no risk, the home's included.")
@click.option("--pin", multiple=True, metavar="DOMAIN", help="Never retire its replica; replaces the list.")
@click.option("--exclude", multiple=True, metavar="DOMAIN", help="Never invite it; replaces the list.")
@domain_options
def set_(target: Target, rp: str | None, pin: tuple[str, ...], exclude: tuple[str, ...], **members: Any) -> None:
    """Set switch and bounds, for RP or for the whole domain."""
    stated = {name: value for name, value in members.items() if value is not None}
    if stated.get("mode") == "inherit":
        stated["mode"] = None
    stated |= {name: list(names) for name, names in (("pinned", pin), ("excluded", exclude)) if names}
    if not stated:
        raise click.UsageError("Say what to set, for example --mode apply.")

    async def work() -> None:
        async with target.client() as client:
            found = await client.plan.bound(rp, **stated)
        target.show(found, lambda one: _bounds(one if rp else one["bounds"]))

    run(work())


@command.command(cls=Command)
@click.option("--whom", type=_WHOM, help="From whom invitations are accepted.")
@click.option("--named", multiple=True, metavar="DOMAIN", help="With --whom named; replaces the list.")
@click.option("--refuse", multiple=True, metavar="DOMAIN", help="Never accept from it; replaces the list.")
@click.option("--replicas-max", type=click.IntRange(min=0), help="Most replicas by invitation.")
@click.option("--replicas-per-home-max", type=click.IntRange(min=0), help="Most of one home.")
@click.option("--history-bytes-max", type=click.IntRange(min=0), help="Most history of one replica.")
@click.option("--history-bytes-total-max", type=click.IntRange(min=0), help="Most history of all.")
@click.option("--events-per-s-max", type=click.IntRange(min=0), help="Most events expected for one replica.")
@click.option("--per-home-per-hour-max", type=click.IntRange(min=1), help="Most invitations of one home in an hour.")
@click.option("--pressure-max-percent", type=click.IntRange(1, 100), help="Above this load nothing is accepted.")
@domain_options
def invitations(target: Target, named: tuple[str, ...], refuse: tuple[str, ...], **members: Any) -> None:
    """Show the standing policy for invitations of other domains and those received last; options change the policy."""
    stated = {name: value for name, value in members.items() if value is not None}
    stated |= {name: list(names) for name, names in (("named", named), ("refused", refuse)) if names}
    if "whom" in stated and stated["whom"] != "named":
        stated["named"] = []

    async def work() -> None:
        async with target.client() as client:
            found = await (client.plan.invitations_bound(**stated) if stated else client.plan.invitations())
        target.show(found, _invitations)
        if not found["recent"] and not target.json:
            note("No invitation was received lately.")

    run(work())


@command.command(cls=Command)
@domain_options
def homes(target: Target) -> None:
    """Show the homes that moved, who elects successors, and proofs that a rendezvous point was handed over twice."""

    async def work() -> None:
        async with target.client() as client:
            found = await client.plan.homes()
        target.show(found, _homes)
        if not (found["items"] or found.get("proofs")) and not target.json:
            note("No home moved, and none has a succession plan.")

    run(work())


def _homes(found: dict[str, Any]) -> list[str]:
    lines = [
        f"{one['rp']}  {one['home']}, term {one['term']}"
        + (f", {one['kind']} from {one['former']}" if one["kind"] else "")
        + (f"; electors {', '.join(one['electors'])}" if one["electors"] else "")
        for one in found["items"]
    ]
    for one in found.get("proofs", []):
        lines.append(f"TWO HOMES  {one['rp']}, term {one['term']}: {one['kept']} is kept, {one['other']} is not")
        lines += [f"  {said}" for said in one["detail"]]
    return lines


def _plan(plan: dict[str, Any]) -> list[str]:
    pressure = "not measured" if plan["pressure"] is None else f"{plan['pressure']:.0%}"
    soon = "" if plan["predicted"] is None else f", {plan['predicted']:.0%} in 30 s"
    lines = [f"mode      {plan['mode']}", f"pressure  {pressure}{soon}", _bounds(plan["bounds"])]
    lines += [_decision(one) for one in plan["open"]]
    lines += [f"cannot be reached  {one['rp']}  {one['about']}: {one['why']}" for one in plan["shortfalls"]]
    return lines + [f"not asked until {until[:19]}Z  {name}" for name, until in plan["not_asked"].items()]


def _preview(found: dict[str, Any]) -> list[str]:
    lines = [f"pressure  {found['pressure']:.0%}, {found['predicted']:.0%} in 30 s", f"looked at {found['rps']} RPs"]
    for one in found["steps"]:
        change = " ".join([*(f"+{name}" for name in one["adds"]), *(f"-{name}" for name in one["retires"])])
        lines.append(f"would     {one['rp']}  {change}  {one['why']}{' (off)' if one['mode'] == 'off' else ''}")
    lines += [f"cannot be reached  {one['rp']}  {one['about']}: {one['why']}" for one in found["shortfalls"]]
    if found["unmeasured"]:
        lines.append(f"measures  {' '.join(found['unmeasured'])} first")
    return lines if len(lines) > 2 else [*lines, "nothing to do"]


def _routes(found: dict[str, Any]) -> list[str]:
    lines = [f"mode      {found['switch']['mode_in_force']}"]
    for one in found["items"]:
        planned, measured = (
            "-" if one[name] is None else f"{one[name]:.6f}".rstrip("0") for name in ("planned", "measured")
        )
        figures = f"target {one['target']:g}  planned {planned}  measured {measured}"
        lines.append(f"{one['rp']}  {one['mode_in_force']:6}  {one['state']:7}  {figures}  {one['links']} links")
        lines += [f"  missed  {name}: {why}" for name, why in one["missed"].items()]
    return lines


def _routes_preview(found: dict[str, Any]) -> list[str]:
    signs = {(True, True): " ", (True, False): "+", (False, True): "-"}
    lines = [f"target    {found['target']:g}  {'met' if found['met'] else 'not met'}  events of {found['origin']}"]
    for one in found["receivers"]:
        now = "" if one["in_force"] is None else f", {one['in_force']:.6f} in force"
        lines.append(f"{one['domain']}  {one['planned']:.6f}{now}{'  ' + one['missed'] if one['missed'] else ''}")
    return lines + [
        f"{signs[one['planned'], one['in_force']]} {' - '.join(one['ends'])}  {one['delivery']:.4f}"
        for one in found["links"]
        if one["planned"] or one["in_force"]
    ]


def _bounds(bounds: dict[str, Any]) -> str:
    parts = [
        f"mode {bounds['mode_in_force']}",
        f"replicas ≤ {bounds['replicas_max']}",
        f"histories {bounds['histories']}",
    ]
    parts += [f"{name} {' '.join(bounds[name])}" for name in ("pinned", "excluded") if bounds[name]]
    return f"bounds    {', '.join(parts)}"


def _decision(one: dict[str, Any]) -> str:
    change = " ".join([*(f"+{name}" for name in one["adds"]), *(f"-{name}" for name in one["retires"])])
    return f"{one['id']:>6}  {one['state']:9}  {one['rp']}  {change}  {one['why']}"


def _explained(one: dict[str, Any]) -> list[str]:
    lines = [_decision(one), f"reason    {one['reason']}"]
    lines += [f"input     {name} = {value}" for name, value in sorted(one["inputs"].items())]
    lines += [f"at        {name}: {it['state']} {it['detail']}".rstrip() for name, it in one["progress"].items()]
    if one["decided_by"]:
        lines.append(f"by        {one['decided_by']}")
    return [*lines, f"ended     {one['detail']}"] if one["detail"] else lines


def _invitations(found: dict[str, Any]) -> list[str]:
    lines = [
        f"{name:24}{value if not isinstance(value, list) else ' '.join(value) or '-'}"
        for name, value in found["policy"].items()
    ]
    return lines + [
        f"{one['at'][:19]}Z  {one['home']}  {one['rp']}  {'accepted' if one['accepted'] else one['detail']}"
        for one in found["recent"]
    ]
