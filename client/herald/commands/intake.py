"""`herald intake`: addresses at which other systems' webhooks become events."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from herald.commands.common import Command, CommandGroup, Target, domain_options, run
from herald.commands.output import ask, note

PAGE = 100
FORMATS = ("plain", "cloudevents", "standard-webhooks", "github", "stripe", "grafana", "alertmanager", "websub")
CHOSEN_HERE = ("github", "grafana")  # the sender takes any secret, so that a good one is made here
SECRET_CHARS_MAX = 512
SECRET_BYTES = 32
STDIN = "-"


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
    secret, made_here = _secret(secret_file), False
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


@command.command(name="list", cls=Command)
@click.argument("rp")
@domain_options
def list_(target: Target, rp: str) -> None:
    """List the intakes of a rendezvous point (id or name), without addresses and secrets."""

    async def work() -> None:
        cursor, empty = None, True
        async with target.client() as client:
            while True:
                page = await client.intakes.list(rp, cursor=cursor, limit=PAGE)
                for item in page["items"]:
                    empty = False
                    target.show(item, _line)
                cursor = page["next"]
                if cursor is None:
                    break
        if empty and not target.json:
            note("There are no intakes.")

    run(work())


@command.command(cls=Command)
@click.argument("intake", metavar="ID")
@_secret_option
@domain_options
def rotate(target: Target, intake: str, secret_file: str | None) -> None:
    """Change an intake's secret. The one before is accepted for a day more."""
    secret = _secret(secret_file)
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


def _secret(file: str | None) -> str | None:
    """Read a secret; never from the command line, which other users of the machine can read."""
    if file is None:
        return None
    try:
        text = sys.stdin.read(SECRET_CHARS_MAX + 2) if file == STDIN else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"The secret cannot be read: {error}") from None
    return text.strip()


def _described(item: Mapping[str, Any]) -> list[str]:
    lease = item["lease"]
    return [
        f"id      {item['id']}",
        f"format  {item['format']}",
        f"lease   until {lease['expires_at'][:19]}Z unless used or renewed",
    ]


def _line(item: Mapping[str, Any]) -> str:
    signed = "signed" if item["signed"] else "unsigned"
    return f"{item['id']}  {item['format']:18} {signed:9} {item['lease']['expires_at'][:19]}Z  {item['title']}".rstrip()
