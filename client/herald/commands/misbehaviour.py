"""`herald misbehaviour`: misbehaviour of other domains, its proofs, and quarantines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from herald.commands.common import Command, CommandGroup, Target, domain_options, run
from herald.commands.listing import ListColumn, ListPrinter, list_options, when
from herald.commands.proof import write

PAGE = 500


@click.group(cls=CommandGroup, short_help="List misbehaviour of other domains and its proofs; lift a quarantine.")
def command() -> None:
    """List misbehaviour of other domains, its proofs, and quarantines; lift a quarantine."""


_COLUMNS = (
    ListColumn("carrier", lambda one: one["carrier"]),
    ListColumn("origin", lambda one: one["origin"]),
    ListColumn("kind", lambda one: one["kind"]),
    ListColumn("count", lambda one: one["count"]),
    ListColumn("last", lambda one: when(one["last_at"])),
    ListColumn("detail", lambda one: one["detail"]),
    ListColumn("rp-id", lambda one: one["rp"], extra=True),
)


@command.command(name="list", cls=Command)
@click.option("--kind", help="Only this kind, such as tampered.")
@click.option("--domain", help="Only misbehaviour that this domain carried or originated.")
@list_options(_COLUMNS)
def list_(target: Target, kind: str | None, domain: str | None, columns: tuple[ListColumn, ...]) -> None:
    """List counted misbehaviour and quarantines. Requires a viewer's token."""
    run(_list(target, kind, domain, columns))


async def _list(target: Target, kind: str | None, domain: str | None, columns: tuple[ListColumn, ...]) -> None:
    async with target.client() as client:
        quarantines = [one for one in await client.quarantines() if domain in (None, one["origin"])]
        empty = "No misbehaviour was counted." if quarantines else "No misbehaviour was recorded."
        with ListPrinter(target, columns, empty=empty) as rows:
            cursor = None
            while True:
                page = await client.misbehaviour(kind=kind, domain=domain, cursor=cursor, limit=PAGE)
                for item in page["items"]:
                    rows.add(item)
                cursor = page["next"]
                if cursor is None:
                    break
    for one in quarantines:
        target.show({"quarantine": one}, _quarantine)


def _quarantine(found: Mapping[str, Any]) -> str:
    one = found["quarantine"]
    return f"In quarantine since {one['since']}: {one['origin']}. {one['why']}"


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


_PROOFS = (
    ListColumn("origin", lambda one: one["origin"]),
    ListColumn("rp-id", lambda one: one["rp"]),
    ListColumn("found", lambda one: when(one["found_at"])),
    ListColumn("digest", lambda one: one["digest"]),
    ListColumn("carrier", lambda one: one.get("carrier"), extra=True),
)


@command.command(cls=Command)
@click.argument("digest", required=False)
@click.option("--domain", help="Only proofs against this domain.")
@click.option(
    "--save", type=click.Path(dir_okay=False, path_type=Path), help="Save the proof DIGEST in this file, for others."
)
@list_options(_PROOFS)
def evidence(
    target: Target, digest: str | None, domain: str | None, save: Path | None, columns: tuple[ListColumn, ...]
) -> None:
    """List the proofs that a domain equivocated; with DIGEST show one. Anybody can verify a proof without this domain."""
    if digest is None and save is not None:
        raise click.UsageError("Give the DIGEST of the proof to save: herald misbehaviour evidence lists them.")
    run(_proofs(target, domain, columns) if digest is None else _proof(target, digest, save))


async def _proofs(target: Target, domain: str | None, columns: tuple[ListColumn, ...]) -> None:
    cursor = None
    empty = "There are no proofs: no domain was proved to have equivocated."
    with ListPrinter(target, columns, empty=empty) as rows:
        async with target.client() as client:
            while True:
                page = await client.operating.evidence(origin=domain, cursor=cursor, limit=PAGE)
                for item in page["items"]:
                    rows.add(item)
                cursor = page["next"]
                if cursor is None:
                    break


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
