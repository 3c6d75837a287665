"""`herald doctor`: the server's own checks if its folder is on this machine, else checks from outside."""

from __future__ import annotations

from typing import Any

import click

from herald.commands.common import Command, Target, domain_options, explain, run
from herald.commands.home import find_home, manage
from herald.commands.output import say as print_line
from herald.commands.peer import in_groups
from herald.errors import HeraldError


@click.command(cls=Command, short_help="Check the installation, or a domain from outside.")
@click.option(
    "--remote", is_flag=True, help="Check the domain at --url from outside, even if the server's folder is here."
)
@click.option("--settings", is_flag=True, help="Also list all settings of the installation with their origin.")
@domain_options
def command(target: Target, remote: bool, settings: bool) -> None:
    """Check the installation, what is wrong first; without the server's folder, check the domain at --url from outside."""
    home = None if remote else find_home()
    if home is not None:
        click.get_current_context().exit(
            manage(home, "doctor", *(["--json"] if target.json else []), *(["--all-settings"] if settings else []))
        )
    run(_check(target))


async def _check(target: Target) -> None:
    """Check the domain step by step; each line states a result or what to do."""
    ctx = click.get_current_context()
    found: dict[str, Any] = {"url": target.url}
    healthy = True

    def say(subject: str, says: str, ok: bool = True) -> None:
        nonlocal healthy
        healthy = healthy and ok
        found[subject] = says
        if not target.json:
            print_line(f" {'ok  ' if ok else 'fail'}  {subject:9} {says}")

    async with target.client() as client:
        about = await client.about()
        say("domain", str(about.get("domain")))
        if isinstance(about.get("fingerprint"), str):
            say("fingerprint", in_groups(about["fingerprint"]))
        try:
            await client.ready()
            say("readiness", "all services that it needs are up")
        except HeraldError as error:
            say("readiness", str(error), ok=False)
        try:
            async for _ in client.rps.list(limit="1"):
                break
            say("token", "accepted")
        except HeraldError as error:
            say("token", explain(error, ctx), ok=False)
    if target.json:
        target.show({**found, "healthy": healthy}, "")
    if not healthy:
        ctx.exit(1)
