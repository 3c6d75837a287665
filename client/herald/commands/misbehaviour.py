"""`herald misbehaviour`: what other domains did wrong, the proofs of it, and whose events are refused for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from herald.commands.common import Command, Group, Target, domain_options, run
from herald.commands.output import note, say
from herald.commands.proof import write

PAGE = 500


@click.group(cls=Group, short_help="See what other domains did wrong, and proofs; lift a quarantine.")
def command() -> None:
    """See what other domains did wrong, the proofs of it, and who is in quarantine; lift a quarantine."""


@command.command(name="list", cls=Command)
@click.option("--kind", help="Of this kind only, such as tampered.")
@click.option("--domain", help="Only what this domain carried, or is about.")
@domain_options
def list_(target: Target, kind: str | None, domain: str | None) -> None:
    """List what was counted, and who is in quarantine. Needs the token of who oversees the domain: an administrator's."""
    run(_list(target, kind, domain))


async def _list(target: Target, kind: str | None, domain: str | None) -> None:
    async with target.client() as client:
        cursor, empty = None, True
        while True:
            page = await client.misbehaviour(kind=kind, domain=domain, cursor=cursor, limit=PAGE)
            for item in page["items"]:
                empty = False
                target.show(item, _line)
            cursor = page["next"]
            if cursor is None:
                break
        quarantines = [one for one in await client.quarantines() if domain in (None, one["origin"])]
    for one in quarantines:
        target.show({"quarantine": one}, _quarantine)
    if empty and not quarantines and not target.json:
        say("Nothing: no domain did anything wrong here.")


def _quarantine(found: Mapping[str, Any]) -> str:
    one = found["quarantine"]
    return f"In quarantine since {one['since']}: {one['origin']}. {one['why']}"


def _line(item: Mapping[str, Any]) -> str:
    times = "once" if item["count"] == 1 else f"{item['count']} times"
    about = f", about {item['origin']}" if item["origin"] != item["carrier"] else ""
    where = f" at {item['rp']}" if item["rp"] else ""
    return f"{item['last_at']}  {item['kind']:12}  {times}, from {item['carrier'] or 'somebody'}{about}{where}: {item['detail']}"


@command.command(cls=Command)
@click.argument("origin", metavar="DOMAIN")
@domain_options
def lift(target: Target, origin: str) -> None:
    """Lift the quarantine of DOMAIN: its events are taken again. The evidence is kept. Needs an administrator's token."""

    async def work() -> None:
        async with target.client() as client:
            await client.lift_quarantine(origin)
        target.show({"lifted": origin}, f"{origin} is not in quarantine any more; what it publishes is taken again.")

    run(work())


@command.command(cls=Command)
@click.argument("digest", required=False)
@click.option("--domain", help="Only proofs against this domain.")
@click.option(
    "--save", type=click.Path(dir_okay=False, path_type=Path), help="Keep the proof DIGEST in this file, for others."
)
@domain_options
def evidence(target: Target, digest: str | None, domain: str | None, save: Path | None) -> None:
    """List the proofs that a domain told two stories; with DIGEST show one. Others can check it without this domain."""
    if digest is None and save is not None:
        raise click.UsageError("Say which proof is to be kept, by its DIGEST: herald misbehaviour evidence lists them.")
    run(_proofs(target, domain) if digest is None else _proof(target, digest, save))


async def _proofs(target: Target, domain: str | None) -> None:
    cursor, empty = None, True
    async with target.client() as client:
        while True:
            page = await client.operating.evidence(origin=domain, cursor=cursor, limit=PAGE)
            for item in page["items"]:
                empty = False
                target.show(
                    item, lambda item: f"{item['digest']}  {item['found_at']}  {item['origin']} at {item['rp']}"
                )
            cursor = page["next"]
            if cursor is None:
                break
    if empty and not target.json:
        note("There is none: no domain was proved to have told two stories.")


async def _proof(target: Target, digest: str, save: Path | None) -> None:
    async with target.client() as client:
        found = await client.operating.evidence_export(digest)
    if save is not None:
        write(save, found)
    target.show(found, lambda found: _contradiction(found, save))


def _contradiction(found: Mapping[str, Any], save: Path | None) -> list[str]:
    kept = "--save FILE keeps it" if save is None else f"It is in {save}"
    return [
        f"{found['origin']} signed two seals of its feed {found['epoch']} at {found['rp']} that contradict each other.",
        f"Found {found['found_at']}, brought by {found['carrier'] or 'nobody: it was found here'}.",
        *(f"  seal by key {seal['kid']}, signature {seal['signature'][:20]}..." for seal in found["seals"]),
        "The keys of its domain document are in the proof."
        if found["document"]
        else "Its domain document is not known here.",
        f"{kept}; whoever has it can check it without this domain.",
    ]
