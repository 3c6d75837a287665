"""`herald contact-point`: who is notified of a domain's alarms, by webhook or mail."""

from __future__ import annotations

from typing import Any

import click

from herald.commands.common import Command, CommandGroup, Target, domain_options, run
from herald.commands.listing import ListColumn, ListPrinter, list_options, when
from herald.commands.moments import duration_s
from herald.commands.output import ask, note
from herald.commands.secret_files import secret_read

SECRET_CHARS_MAX = 128


@click.group(cls=CommandGroup, short_help="Notify people and programs of alarms, by webhook or mail.")
def command() -> None:
    """Notify people and programs of a domain's alarms, by webhook or mail."""


_COLUMNS = (
    ListColumn("name", lambda one: one["name"]),
    ListColumn("kind", lambda one: one["kind"]),
    ListColumn("severity", lambda one: one["severity"]),
    ListColumn("delivered", lambda one: when(one["delivered_at"])),
    ListColumn(
        "state",
        lambda one: f"failing: {one['failure']}" if one["failures"] else "ready",
        lambda one: "red" if one["failures"] else None,
    ),
    ListColumn("target", lambda one: one["target"]),
    ListColumn("id", lambda one: one["id"], extra=True),
)


@command.command(name="list", cls=Command)
@list_options(_COLUMNS)
def list_(target: Target, columns: tuple[ListColumn, ...]) -> None:
    """List the contact points, without their secrets."""

    async def work() -> None:
        with ListPrinter(
            target, columns, empty="There are no contact points. Create one: herald contact-point create"
        ) as rows:
            async with target.client() as client:
                for item in await client.contact_points.list():
                    rows.add(item)

    run(work())


def _stated(function: Any) -> Any:
    for option in reversed(
        (
            click.option("--webhook", "endpoint", metavar="URL", help="Of a webhook: an https URL."),
            click.option(
                "--secret-file", help="Of a webhook: file with the secret that signs; - for stdin. Else one is made."
            ),
            click.option("--to", multiple=True, help="Of mail: an address; repeat it for more."),
            click.option(
                "--severity", type=click.Choice(["warning", "critical"]), help="Least severity that is notified."
            ),
            click.option("--resolved/--no-resolved", default=None, help="Whether the end of alarms is notified, too."),
            click.option("--every", callback=_group_s, help="Least time between two messages: 30s, 5m. Default: 60s."),
        )
    ):
        function = option(function)
    return function


def _group_s(ctx: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    return None if value is None else duration_s(ctx, parameter, value)


def _members(
    endpoint: str | None,
    secret_file: str | None,
    to: tuple[str, ...],
    severity: str | None,
    resolved: bool | None,
    every: int | None,
) -> dict[str, Any]:
    stated = {
        "url": endpoint,
        "secret": secret_read(secret_file, SECRET_CHARS_MAX),
        "to": list(to) or None,
        "severity": severity,
        "resolved": resolved,
        "group_s": every,
    }
    return {name: value for name, value in stated.items() if value is not None}


@command.command(cls=Command)
@click.argument("name")
@_stated
@domain_options
def create(target: Target, name: str, **stated: Any) -> None:
    """Create the contact point NAME: a webhook with --webhook, mail with --to."""
    members = _members(**stated)
    if ("url" in members) == ("to" in members):
        raise click.UsageError("Give either --webhook or --to.")

    async def work() -> None:
        async with target.client() as client:
            kind = "webhook" if "url" in members else "mail"
            made = await client.contact_points.create(name, kind=kind, **members)
        lines = [f"id      {made['id']}", f"target  {made['target']}"]
        if made["secret"]:
            lines.append(f"secret  {made['secret']}")
        target.show(made, lambda _: lines)
        if made["secret"] and not target.json:
            note("Keep the secret, with which the receiver verifies messages: it is not shown again.")

    run(work())


@command.command(cls=Command)
@click.argument("contact_point", metavar="NAME")
@click.option("--name", "renamed", help="Another name.")
@_stated
@domain_options
def change(target: Target, contact_point: str, renamed: str | None, **stated: Any) -> None:
    """Change a contact point (id or name)."""
    members = _members(**stated) | ({"name": renamed} if renamed else {})

    async def work() -> None:
        async with target.client() as client:
            changed = await client.contact_points.change(contact_point, **members)
        target.show(changed, f"changed {changed['name']}")

    run(work())


@command.command(cls=Command)
@click.argument("contact_point", metavar="NAME")
@domain_options
def test(target: Target, contact_point: str) -> None:
    """Send a test message to a contact point (id or name) now."""

    async def work() -> None:
        async with target.client() as client:
            done = await client.contact_points.test(contact_point)
        word = "delivered" if done["delivered"] else "not delivered"
        target.show(done, f"{word} in {done['took_ms']} ms: {done['reason']}")
        if not done["delivered"]:
            raise SystemExit(1)

    run(work())


@command.command(cls=Command)
@click.argument("contact_point", metavar="NAME")
@click.option("--yes", is_flag=True, help="Do not ask.")
@domain_options
def delete(target: Target, contact_point: str, yes: bool) -> None:
    """Delete a contact point (id or name)."""
    if not yes and not ask(f"Delete the contact point {contact_point}? It is notified of no further alarm."):
        raise click.Abort

    async def work() -> None:
        async with target.client() as client:
            await client.contact_points.delete(contact_point)
        target.show({"deleted": contact_point}, f"deleted {contact_point}")

    run(work())
