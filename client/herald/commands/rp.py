"""`herald rp`: create, list, show, change, renew and delete rendezvous points."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from herald.commands.common import (
    Command,
    CommandGroup,
    Target,
    domain_options,
    history_of,
    history_options,
    run,
)
from herald.commands.output import ask, dump, note
from herald.commands.watching import watch
from herald.rendezvous_points import RendezvousPoint

_renew_on_use = click.option(
    "--renew-on-use/--no-renew-on-use",
    default=None,
    help="Whether publishing and reading renew its lease. Default: yes.",
)
_file = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(cls=CommandGroup)
def command() -> None:
    """Create and manage rendezvous points."""


def _described(rp: RendezvousPoint) -> list[str]:
    lines = [("name", rp.name or "-"), ("id", rp.id), ("title", rp.title or "-"), ("epoch", rp.epoch or "-")]
    if rp.lease.expires_at:
        lines.append(("lease", f"{rp.lease}"))
    for key in ("notice", "offset", "creator", "ack", "paused", "history", "policy", "audience", "watch"):
        value = rp.document.get(key)
        if value is not None:
            lines.append((key, value if isinstance(value, str) else dump(value)))
    if rp.etag:
        lines.append(("etag", rp.etag))
    return [f"{key:8} {value}" for key, value in lines]


def _policy(path: Path | None) -> list[Any] | None:
    if path is None:
        return None
    try:
        rules = json.loads(path.read_text())
    except ValueError as error:
        raise click.UsageError(f"{path} is not JSON: {error}") from error
    if not isinstance(rules, list):
        raise click.UsageError(f"{path} is not a policy. A policy is a JSON list of rules.")
    return rules


@command.command(cls=Command)
@click.argument("name", required=False)
@click.option("--title", help="Title, for people.")
@click.option(
    "--lease-s", type=click.IntRange(min=1), help="Seconds to live unless used or renewed. Default: the domain's."
)
@_renew_on_use
@history_options
@click.option("--ack", help="accepted, stored or replicated:N. Default: stored.")
@click.option(
    "--policy", type=_file, help="JSON file with the policy: a list of rules. Default: any token of the domain."
)
@domain_options
def create(
    target: Target,
    name: str | None,
    title: str | None,
    lease_s: int | None,
    renew_on_use: bool | None,
    ack: str | None,
    policy: Path | None,
    **bounds: Any,
) -> None:
    """Create a rendezvous point, named /authority/a/b/, or a/b for one under the domain."""

    async def work() -> None:
        async with target.client() as client:
            rp = await client.rps.create(
                name=name,
                title=title,
                lease_s=lease_s,
                history=history_of(**bounds),
                policy=_policy(policy),
                ack=ack,
                renew_on_use=renew_on_use,
            )
        lines = [f"created {rp.name or rp.id}", f"id      {rp.id}", f"lease {rp.lease}"]
        target.show(rp.document, lambda found: [*lines, *([str(found["notice"])] if found.get("notice") else [])])

    run(work())


@command.command(name="list", cls=Command)
@click.option("--prefix", help="Only names under this one, such as /localhost/hosts/.")
@domain_options
def list_(target: Target, prefix: str | None) -> None:
    """List the rendezvous points that you may describe, newest first."""

    async def work() -> None:
        count = 0
        async with target.client() as client:
            async for rp in client.rps.list(**({"prefix": prefix} if prefix else {})):
                offset = rp.document.get("offset", "")
                target.show(rp.document, f"{rp.id}  {offset!s:>9}  {rp.lease.expires_at:27}  {rp.name or '-'}")
                count += 1
        if not count and not target.json:
            note("There are no rendezvous points yet. Create one: herald rp create weather")

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
@click.option("--ack", help="accepted, stored or replicated:N.")
@click.option("--policy", type=_file, help="JSON file with the policy: a list of rules.")
@click.option("--if-match", help="Only if this is still its version (the etag that `show` prints).")
@domain_options
def update(
    target: Target,
    rp: str,
    name: str | None,
    title: str | None,
    renew_on_use: bool | None,
    ack: str | None,
    policy: Path | None,
    if_match: str | None,
    **bounds: Any,
) -> None:
    """Change a rendezvous point; options that are not given stay as they are."""
    stated: dict[str, Any] = {"name": name, "title": title, "history": history_of(**bounds), "ack": ack}
    stated |= {"policy": _policy(policy), "renew_on_use": renew_on_use}
    changes = {key: value for key, value in stated.items() if value is not None}
    if not changes:
        raise click.UsageError("Give at least one option to change, such as --title or --max-events.")

    async def work() -> None:
        async with target.client() as client:
            changed = await client.rps.update(rp, changes, if_match=if_match)
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


command.add_command(watch)


@command.command(cls=Command)
@click.argument("rp")
@domain_options
def delete(target: Target, rp: str) -> None:
    """Delete a rendezvous point with its history and its subscriptions."""

    async def work() -> None:
        async with target.client() as client:
            await client.rps.delete(rp)
        target.show({"deleted": rp}, f"deleted {rp}")

    run(work())
