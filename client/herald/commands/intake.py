"""`herald intake`: addresses at which other systems' webhooks become events."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import click

from herald.commands.common import Command, CommandGroup, Target, domain_options, run
from herald.commands.listing import ListColumn, ListPrinter, list_options, when
from herald.commands.output import ask, note
from herald.commands.secret_files import secret_read

PAGE = 100
FORMATS = ("plain", "cloudevents", "standard-webhooks", "github", "stripe", "grafana", "alertmanager", "websub")
CHOSEN_HERE = ("github", "grafana")  # the sender takes any secret, so that a good one is made here
SECRET_CHARS_MAX = 512
SECRET_BYTES = 32


@click.group(cls=CommandGroup, short_help="Addresses at which other systems' webhooks become events.")
def command() -> None:
    """Receive webhooks of GitHub, Stripe, Grafana, Alertmanager and others as events of a rendezvous point.

    Requires the right to administer the rendezvous point.
    """


def _secret_option(function: Any) -> Any:
    return click.option(
        "--secret-file",
        metavar="FILE",
        help="File with the secret with which the sender signs; - for stdin.",
    )(function)


@command.command(cls=Command)
@click.argument("rp")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="plain", show_default=True, help="Sender.")
@click.option("--title", default="", help="Name for people.")
@click.option(
    "--source", help="Source of events whose sender states none; of websub: the topic. Default: /DOMAIN/intakes/ID."
)
@click.option("--timestamp-header", default="", help="Of grafana: the header with the signature's time.")
@click.option(
    "--lease-s", type=click.IntRange(min=1), help="Seconds to live unless used or renewed. Default: the longest."
)
@_secret_option
@domain_options
def create(
    target: Target,
    rp: str,
    format_: str,
    title: str,
    source: str | None,
    timestamp_header: str,
    lease_s: int | None,
    secret_file: str | None,
) -> None:
    """Create an intake at a rendezvous point (id or name), and print its address, which is shown only once."""
    secret, made_here = secret_read(secret_file, SECRET_CHARS_MAX), False
    if secret is None and format_ in CHOSEN_HERE:
        secret, made_here = secrets.token_hex(SECRET_BYTES), True
    members = {
        "title": title,
        "timestamp_header": timestamp_header,
        **({} if secret is None else {"secret": secret}),
        **({} if source is None else {"source": source}),
        **({} if lease_s is None else {"lease_s": lease_s}),
    }

    async def work() -> None:
        async with target.client() as client:
            made = await client.intakes.create(rp, format=format_, **members)
        if made_here:
            made["secret"] = secret
        lines = [f"url     {made['url']}", *([f"secret  {secret}"] if made_here else []), *_described(made)]
        target.show(made, lambda _: lines)
        if not target.json:
            note("State the address at the sender now: it is not shown again.")

    run(work())


_COLUMNS = (
    ListColumn("title", lambda one: one["title"]),
    ListColumn("format", lambda one: one["format"]),
    ListColumn(
        "signed", lambda one: "signed" if one["signed"] else "unsigned", lambda one: None if one["signed"] else "yellow"
    ),
    ListColumn("used", lambda one: when(one.get("last_used_at"))),
    ListColumn("ends", lambda one: when(one["lease"]["expires_at"])),
    ListColumn("id", lambda one: one["id"]),
)


@command.command(name="list", cls=Command)
@click.argument("rp")
@list_options(_COLUMNS)
def list_(target: Target, rp: str, columns: tuple[ListColumn, ...]) -> None:
    """List the intakes of a rendezvous point (id or name), without addresses and secrets."""

    async def work() -> None:
        cursor = None
        with ListPrinter(target, columns, empty=f"There are no intakes. Create one: herald intake create {rp}") as rows:
            async with target.client() as client:
                while True:
                    page = await client.intakes.list(rp, cursor=cursor, limit=PAGE)
                    for item in page["items"]:
                        rows.add(item)
                    cursor = page["next"]
                    if cursor is None:
                        break

    run(work())


@command.command(cls=Command)
@click.argument("intake", metavar="ID")
@_secret_option
@domain_options
def rotate(target: Target, intake: str, secret_file: str | None) -> None:
    """Change an intake's secret. The one before is accepted for a day more."""
    secret = secret_read(secret_file, SECRET_CHARS_MAX)
    if secret is None:
        raise click.UsageError("Give the new secret: --secret-file FILE, or - for stdin.")

    async def work() -> None:
        async with target.client() as client:
            changed = await client.intakes.change(intake, secret=secret)
        until = changed.get("previous_until")
        target.show(
            changed,
            f"changed the secret of {intake}" + (f"; the one before is accepted until {until}" if until else ""),
        )

    run(work())


@command.command(cls=Command)
@click.argument("intake", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask.")
@domain_options
def delete(target: Target, intake: str, yes: bool) -> None:
    """End an intake: its address receives nothing any more."""
    if not yes and not ask(f"End the intake {intake}? Its sender's webhooks will be refused."):
        raise click.Abort

    async def work() -> None:
        async with target.client() as client:
            await client.intakes.delete(intake)
        target.show({"deleted": intake}, f"deleted {intake}")

    run(work())


def _described(item: Mapping[str, Any]) -> list[str]:
    lease = item["lease"]
    return [
        f"id      {item['id']}",
        f"format  {item['format']}",
        f"lease   until {lease['expires_at'][:19]}Z unless used or renewed",
    ]
