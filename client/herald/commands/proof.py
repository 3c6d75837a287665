"""`herald proof`: verify who published an event."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from herald.commands.common import Command, Target, domain_options, run
from herald.commands.output import dump
from herald.errors import InputError
from herald.proofs import Proved, check

_GROUP = 4
_ID = re.compile(r"[a-z2-7]{26}")
PROOF_BYTES_MAX = 8 * 1024 * 1024
"""Bytes of a file with a proof: the largest event in base64, and the rest of the proof."""


@click.command(cls=Command, short_help="Prove who published an event.")
@click.argument("rp", metavar="RP")
@click.argument("place", metavar="CURSOR", required=False)
@click.option(
    "--fingerprint",
    help="Fingerprint of the publishing domain, obtained from that domain: then nothing is taken on trust.",
)
@click.option(
    "--save", type=click.Path(dir_okay=False, path_type=Path), help="Save the proof in this file, for others."
)
@click.option(
    "--file",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help="Verify a saved proof, without a domain.",
)
@domain_options
def command(
    target: Target, rp: str, place: str | None, fingerprint: str | None, save: Path | None, file: Path | None
) -> None:
    """Get the proof of the event at CURSOR (or at an offset) of RP, verify it here, and print what was proved.

    The domain that is asked need not be trusted: its answer is verified by the signature of the domain that published
    the event. Exit code 1 if the proof proves nothing.
    """
    if (place is None) == (file is None):
        raise click.UsageError("Give the event's CURSOR or its offset, or a file with --file.")
    run(_prove(target, rp, place, fingerprint, save, file))


async def _prove(
    target: Target, rp: str, place: str | None, fingerprint: str | None, save: Path | None, file: Path | None
) -> None:
    if file is not None:
        document = _read(file)
    else:
        offset = int(place) if place is not None and place.isascii() and place.isdigit() else None
        async with target.client() as client:
            document = await client.proof(rp, cursor=place if offset is None else None, offset=offset)
    wanted = rp if _ID.fullmatch(rp) else None  # a name does not show the signed id
    proved = check(document, rp=wanted, fingerprint=fingerprint)
    if save is not None:
        write(save, document)
    shown = {**asdict(proved), "event": base64.b64encode(proved.event).decode()}
    target.show(shown, lambda _: _words(proved))


def _words(proved: Proved) -> list[str]:
    """Return what was proved, as lines for people."""
    sealed_at = datetime.fromtimestamp(proved.sealed_at_ms / 1000, UTC).isoformat(timespec="seconds")
    return [
        f"Proved: {proved.origin} published exactly these {len(proved.event)} bytes",
        f"as event {proved.sequence} of its feed {proved.epoch} at {proved.rp}:",
        "",
        f"  {proved.event.decode('utf-8', 'replace')}",
        "",
        f"It sealed events {proved.first} to {proved.last} at {sealed_at} (its clock), with the key {proved.key_id}.",
        f"Fingerprint of {proved.origin}: {_grouped(proved.fingerprint)}",
        "That is the one you gave: nothing else is taken on trust."
        if proved.pinned
        else f"Compare it with the fingerprint that {proved.origin} itself shows (or give it with --fingerprint): "
        "only that is taken on trust.",
    ]


def _grouped(kid: str) -> str:
    return " ".join(kid[at : at + _GROUP] for at in range(0, len(kid), _GROUP))


def _read(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as opened:
            document = json.loads(opened.read(PROOF_BYTES_MAX))
    except (OSError, ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise InputError(f"{file} contains no proof. Make one: herald proof RP CURSOR --save FILE")
    return document


def write(file: Path, document: dict[str, Any]) -> None:
    """Write a document to a file. Raises InputError."""
    try:
        file.write_text(dump(document) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}.") from None
