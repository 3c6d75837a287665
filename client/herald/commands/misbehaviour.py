"""`herald misbehaviour`: misbehaviour of other domains, its proofs, and quarantines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from herald.commands.common import Command, CommandGroup, Target, domain_options, run
from herald.commands.output import note, say
from herald.commands.proof import write

PAGE = 500


@click.group(cls=CommandGroup, short_help="List misbehaviour of other domains and its proofs; lift a quarantine.")
def command() -> None:
    """List misbehaviour of other domains, its proofs, and quarantines; lift a quarantine."""


@command.command(name="list", cls=Command)
@click.option("--kind", help="Only this kind, such as tampered.")
@click.option("--domain", help="Only misbehaviour that this domain carried or originated.")
@domain_options
def list_(target: Target, kind: str | None, domain: str | None) -> None:
    """List counted misbehaviour and quarantines. Requires a viewer's token."""
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
        say("No misbehaviour was recorded.")


def _quarantine(found: Mapping[str, Any]) -> str:
    one = found["quarantine"]
    return f"In quarantine since {one['since']}: {one['origin']}. {one['why']}"


def _line(item: Mapping[str, Any]) -> str:
    times = "once" if item["count"] == 1 else f"{item['count']} times"
    about = f", about {item['origin']}" if item["origin"] != item["carrier"] else ""
    where = f" at {item['rp']}" if item["rp"] else ""
    return f"{item['last_at']}  {item['kind']:12}  {times}, from {item['carrier'] or 'an unknown domain'}{about}{where}: {item['detail']}"


@command.command(cls=Command)
@click.argument("origin", metavar="DOMAIN")
@domain_options
def lift(target: Target, origin: str) -> None:
    """Lift the quarantine of DOMAIN: its events are accepted again. The evidence is kept. Requires an administrator's
    token.
    """

    async def work() -> None:
        async with target.client() as client:
            await client.lift_quarantine(origin)
        target.show({"lifted": origin}, f"{origin} is no longer in quarantine; its events are accepted again.")

    run(work())


@command.command(cls=Command)
@click.argument("digest", required=False)
@click.option("--domain", help="Only proofs against this domain.")
@click.option(
    "--save", type=click.Path(dir_okay=False, path_type=Path), help="Save the proof DIGEST in this file, for others."
)
@domain_options
def evidence(target: Target, digest: str | None, domain: str | None, save: Path | None) -> None:
    """List the proofs that a domain equivocated; with DIGEST show one. Anybody can verify a proof without this domain."""
    if digest is None and save is not None:
        raise click.UsageError("Give the DIGEST of the proof to save: herald misbehaviour evidence lists them.")
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
        note("There are no proofs: no domain was proved to have equivocated.")


async def _proof(target: Target, digest: str, save: Path | None) -> None:
    async with target.client() as client:
        found = await client.operating.evidence_export(digest)
    if save is not None:
        write(save, found)
    target.show(found, lambda found: _contradiction(found, save))


def _contradiction(found: Mapping[str, Any], save: Path | None) -> list[str]:
    kept = "--save FILE saves the proof" if save is None else f"The proof is in {save}"
    return [
        f"{found['origin']} signed two seals of its feed {found['epoch']} at {found['rp']} that contradict each other.",
        f"Found {found['found_at']}, delivered by {found['carrier'] or 'no peer: it was found here'}.",
        *(f"  seal by key {seal['kid']}, signature {seal['signature'][:20]}..." for seal in found["seals"]),
        "The keys of its domain document are in the proof."
        if found["document"]
        else "Its domain document is not known here.",
        f"{kept}; anybody can verify it without this domain.",
    ]
