"""`herald rp`: create, list, show, change, renew and delete rendezvous points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from herald.commands.common import (
    Command,
    CommandGroup,
    Target,
    domain_options,
    history_of,
    history_options,
    history_text,
    run,
)
from herald.commands.listing import ListColumn, ListPrinter, list_options, when
from herald.commands.output import ask, dump
from herald.commands.policy_options import DEFAULT_RULE, Rule, policy_options, policy_with, rule_lines
from herald.commands.rp_info import info
from herald.commands.watching import watch
from herald.rendezvous_points import RendezvousPoint

_renew_on_use = click.option(
    "--renew-on-use/--no-renew-on-use",
    default=None,
    help="Whether publishing and reading renew its lease. Default: yes.",
)
_reliability = click.option(
    "--reliability",
    type=click.FloatRange(0, 0.999999),
    help="Target share of events that arrive at every participant in time, such as 0.999. 0: no target.",
)


@click.group(cls=CommandGroup, aliases={"update": "change"})
def command() -> None:
    """Create and manage rendezvous points."""


def _described(rp: RendezvousPoint) -> list[str]:
    lines = [("name", rp.name or "-"), ("id", rp.id), ("title", rp.title or "-"), ("epoch", rp.epoch or "-")]
    if rp.document.get("home"):
        lines.append(("home", f"{rp.document['home']} (term {rp.document.get('term', 0)})"))
    if rp.lease.expires_at:
        lines.append(("lease", f"{rp.lease}"))
    for key in ("notice", "offset", "creator", "ack", "reliability"):
        value = rp.document.get(key)
        if value is not None:
            lines.append((key, value if isinstance(value, str) else dump(value)))
    paused = rp.document.get("paused")
    if paused:
        lines.append(
            (
                "paused",
                f"since {paused['at']} by {paused['by']}" + (f": {paused['reason']}" if paused["reason"] else ""),
            )
        )
    history = rp.document.get("history")
    if isinstance(history, Mapping):
        lines.append(("history", history_text(history)))
    if "policy" in rp.document:
        lines += _several("policy", rule_lines(rp.document["policy"]))
    for key in ("audience", "watch"):
        if rp.document.get(key):
            lines += _several(key, [dump(one) for one in rp.document[key]])
    if rp.etag:
        lines.append(("etag", rp.etag))
    return [f"{key:11} {value}" for key, value in lines]


def _several(key: str, values: list[str]) -> list[tuple[str, str]]:
    return [("" if index else key, value) for index, value in enumerate(values)]


@command.command(cls=Command)
@click.argument("name", required=False)
@click.option("--title", help="Title, for people.")
@click.option(
    "--lease-s", type=click.IntRange(min=1), help="Seconds to live unless used or renewed. Default: the domain's."
)
@_renew_on_use
@history_options
@click.option("--ack", help="accepted, stored, replicated:N or replicated:all. Default: the domain's, usually stored.")
@policy_options
@_reliability
@domain_options
def create(
    target: Target,
    name: str | None,
    title: str | None,
    lease_s: int | None,
    renew_on_use: bool | None,
    ack: str | None,
    policy: list[Any] | None,
    allow: list[Rule],
    reliability: float | None,
    **bounds: Any,
) -> None:
    """Create a rendezvous point, named /authority/a/b/, or a/b for one under the domain.

    Its policy, unless --policy states one, lets every token of the domain describe, publish, subscribe and read the history;
    --allow adds others:

    \b
    herald rp create weather --allow peer:b.example=publish,subscribe,replicate
    """
    if allow:
        policy = policy_with([DEFAULT_RULE] if policy is None else policy, allow)

    async def work() -> None:
        async with target.client() as client:
            rp = await client.rps.create(
                name=name,
                title=title,
                lease_s=lease_s,
                history=history_of(**bounds),
                policy=policy,
                ack=ack,
                renew_on_use=renew_on_use,
                reliability=reliability or None,
            )
        lines = [f"created {rp.name or rp.id}", f"id      {rp.id}", f"lease {rp.lease}"]
        target.show(rp.document, lambda found: [*lines, *([str(found["notice"])] if found.get("notice") else [])])

    run(work())


def _paused(rp: RendezvousPoint) -> str | None:
    return "yellow" if rp.document.get("paused") else None


_COLUMNS = (
    ListColumn("name", lambda rp: rp.name),
    ListColumn("events", lambda rp: rp.document.get("offset", 0)),
    ListColumn("state", lambda rp: "paused" if rp.document.get("paused") else "open", _paused),
    ListColumn("ends", lambda rp: when(rp.lease.expires_at)),
    ListColumn("id", lambda rp: rp.id),
    ListColumn("title", lambda rp: rp.title, extra=True),
    ListColumn("home", lambda rp: rp.document.get("home"), extra=True),
    ListColumn("creator", lambda rp: rp.document.get("creator"), extra=True),
    ListColumn("ack", lambda rp: rp.document.get("ack"), extra=True),
    ListColumn("created", lambda rp: when(rp.document.get("created_at")), extra=True),
)


@command.command(name="list", cls=Command)
@click.option("--prefix", help="Only names under this one, such as /localhost/hosts/.")
@list_options(_COLUMNS)
def list_(target: Target, prefix: str | None, columns: tuple[ListColumn, ...]) -> None:
    """List the rendezvous points that you may describe, newest first. EVENTS counts all that were ever published."""

    async def work() -> None:
        empty = "There are no rendezvous points yet. Create one: herald rp create weather"
        with ListPrinter(target, columns, empty=empty) as rows:
            async with target.client() as client:
                async for rp in client.rps.list(**({"prefix": prefix} if prefix else {})):
                    rows.add(rp.document, rp)

    run(work())


@command.command(cls=Command)
@click.argument("rp")
@domain_options
def show(target: Target, rp: str) -> None:
    """Describe a rendezvous point, by id or name."""

    async def work() -> None:
        async with target.client() as client:
            found = await client.rps.get(rp)
        target.show(found.document, lambda _: _described(found))

    run(work())


@command.command(cls=Command)
@click.argument("rp")
@click.option("--name", help="New name.")
@click.option("--title", help="Title, for people.")
@_renew_on_use
@history_options
@click.option("--ack", help="accepted, stored, replicated:N or replicated:all.")
@policy_options
@_reliability
@click.option("--if-match", help="Only if this is still its version (the etag that `show` prints).")
@domain_options
def change(
    target: Target,
    rp: str,
    name: str | None,
    title: str | None,
    renew_on_use: bool | None,
    ack: str | None,
    policy: list[Any] | None,
    allow: list[Rule],
    reliability: float | None,
    if_match: str | None,
    **bounds: Any,
) -> None:
    """Change a rendezvous point; options that are not given stay as they are.

    --allow changes the present policy, or that of --policy, for all bearers of an issuer: ISSUER= allows them nothing.
    """
    stated: dict[str, Any] = {"name": name, "title": title, "history": history_of(**bounds), "ack": ack}
    stated |= {"policy": policy, "renew_on_use": renew_on_use}
    changes = {key: value for key, value in stated.items() if value is not None}
    if reliability is not None:
        changes["reliability"] = reliability or None
    if not changes and not allow:
        raise click.UsageError("Give at least one option to change, such as --title or --max-events.")

    async def work() -> None:
        match = if_match
        async with target.client() as client:
            if allow:
                rules = policy
                if rules is None:  # the change is refused if somebody else changes the policy meanwhile
                    present = await client.rps.get(rp)
                    rules, match = present.document["policy"], if_match or present.etag
                changes["policy"] = policy_with(rules, allow)
            changed = await client.rps.update(rp, changes, if_match=match)
        target.show(changed.document, lambda _: _described(changed))

    run(work())


@command.command(cls=Command)
@click.argument("rp")
@click.option("--lease-s", type=click.IntRange(min=1), help="Seconds from now. Default: the domain's.")
@domain_options
def renew(target: Target, rp: str, lease_s: int | None) -> None:
    """Renew a rendezvous point's lease."""

    async def work() -> None:
        async with target.client() as client:
            lease = await client.rps.renew(rp, lease_s)
        document = {"lease": {"granted_s": lease.granted_s, "expires_at": lease.expires_at}}
        target.show(document, f"renewed {rp}: {lease}")

    run(work())


@command.command(cls=Command)
@click.argument("rp")
@click.option("--reason", help="Reason, for publishers.")
@domain_options
def pause(target: Target, rp: str, reason: str | None) -> None:
    """Have the domain refuse events at a rendezvous point until it is resumed; its readers stay."""

    async def work() -> None:
        async with target.client() as client:
            document = await client.operating.pause(rp, reason=reason)
        target.show(
            document,
            lambda document: f"paused {document['name'] or document['id']}. To resume it: herald rp resume {rp}",
        )

    run(work())


@command.command(cls=Command)
@click.argument("rp")
@domain_options
def resume(target: Target, rp: str) -> None:
    """Have the domain accept events again at a paused rendezvous point."""

    async def work() -> None:
        async with target.client() as client:
            document = await client.operating.resume(rp)
        target.show(document, lambda document: f"resumed {document['name'] or document['id']}")

    run(work())


@command.command(cls=Command)
@click.argument("rp")
@click.option("--before", required=True, metavar="CURSOR", help="Remove events up to this cursor; all: every event.")
@click.option("--reason", help="Reason, for the audit.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@domain_options
def trim(target: Target, rp: str, before: str, reason: str | None, yes: bool) -> None:
    """Delete events from a rendezvous point's history permanently. Readers that have not received them get a gap
    notification.
    """
    if not yes and not ask(f"Remove the events up to {before} from {rp}? They cannot be restored."):
        raise click.Abort

    async def work() -> None:
        async with target.client() as client:
            done = await client.operating.trim(rp, before, reason=reason)
        target.show(
            done, lambda done: f"removed {done['removed']} events; the history begins at offset {done['first']}"
        )

    run(work())


@command.command(cls=Command)
@click.argument("rp")
@domain_options
def reliability(target: Target, rp: str) -> None:
    """Show how surely events arrive at each participant in time: the target, the plan, and the measurement."""

    async def work() -> None:
        async with target.client() as client:
            found = await client.rps.reliability(rp)
        target.show(found, _reliability_lines)

    run(work())


def _reliability_lines(found: dict[str, Any]) -> list[str]:
    if found["target"] is None:
        return ["no target reliability. To set one: herald rp change RP --reliability 0.999"]
    lines = [f"target {found['target']:g} within {found['within_s']:g} s: {found['state']}"]
    if found["reason"]:
        lines.append(f"planned {found['planned_at']}: {found['reason']}")
    for one in found["participants"]:
        measured = (
            "not measured here" if one["measured"] is None else f"{one['measured']:.6g} of {one['events']:.0f} events"
        )
        planned = "-" if one["planned"] is None else f"{one['planned']:.6g}"
        lines.append(f"  {one['domain']:30} planned {planned:9} measured {measured}")
        if one["missed"]:
            lines.append(f"  {'':30} {one['missed']}")
    for link in found["links"]:
        used = f"for events of {', '.join(link['origins'])}" if link["origins"] else "not used"
        lines.append(f"  {' - '.join(link['ends']):30} delivers {link['delivery']:.6g}, {used}")
    return lines


command.add_command(watch)
command.add_command(info)


@command.command(cls=Command)
@click.argument("rp")
@click.argument("electors", nargs=-1)
@click.option("--silence-s", type=click.IntRange(min=5), help="Seconds of silence of the home. Default: 300.")
@domain_options
def succession(target: Target, rp: str, electors: tuple[str, ...], silence_s: int | None) -> None:
    """Have the ELECTORS, participants, elect one of them the home of RP when its home is silent. Without ELECTORS: nobody.

    Their majority elects, in the order given. Run it at the home.
    """

    async def work() -> None:
        async with target.client() as client:
            found = await client.replicas.set_succession(rp, electors, silence_s=silence_s)
        plan = found.document.get("succession")
        line = (
            f"{', '.join(plan['electors'])} elect the next home after {plan['silence_s']} s of silence"
            if plan
            else "nobody succeeds the home"
        )
        target.show(found.document, line)

    run(work())


@command.command(cls=Command)
@click.argument("rp")
@click.argument("to", metavar="DOMAIN")
@domain_options
def move(target: Target, rp: str, to: str) -> None:
    """Make DOMAIN the home of RP. It must hold a replica, and trust this domain to host.

    This domain keeps a replica; the id, readers and publishers stay.
    """

    async def work() -> None:
        async with target.client() as client:
            moved = await client.replicas.move(rp, to)
        home, term = moved.document.get("home", ""), moved.document.get("term", 0)
        target.show(moved.document, f"the home of {moved.name or moved.id} is {home}, from term {term} on")

    run(work())


@command.command(cls=Command)
@click.argument("rp")
@click.option("--reason", default="", metavar="TEXT", help="Reason, for the audit.")
@domain_options
def delete(target: Target, rp: str, reason: str) -> None:
    """Delete a rendezvous point with its history and its subscriptions."""

    async def work() -> None:
        async with target.client() as client:
            await client.rps.delete(rp, reason=reason)
        target.show({"deleted": rp}, f"deleted {rp}")

    run(work())
