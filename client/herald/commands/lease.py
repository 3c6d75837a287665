"""`herald lease`: list and renew a domain's leases."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import click

from herald.client import Client
from herald.commands.common import Command, CommandGroup, Target, domain_options, run
from herald.commands.listing import ListColumn, ListPrinter, list_options, when
from herald.commands.moments import ahead, span
from herald.commands.output import note
from herald.leases import Lease

PAGE = 100
KINDS = ("rp", "subscription", "intake", "replica", "peer")


@click.group(cls=CommandGroup, short_help="List leases by expiry; renew them.")
def command() -> None:
    """List the leases of a domain, the soonest to expire first, and renew them. Listing requires a viewer's token."""


_COLUMNS = (
    ListColumn("name", lambda one: one["name"] or (one["rp"] if one["rp"] != one["id"] else "")),
    ListColumn("kind", lambda one: one["kind"]),
    ListColumn("left", lambda one: _left(one), lambda one: "yellow" if one["warned"] else None),
    ListColumn("ends", lambda one: when(one["expires_at"])),
    ListColumn("owner", lambda one: one["owner"]),
    ListColumn("id", lambda one: one["id"]),
    ListColumn("rp-id", lambda one: one["rp"], extra=True),
    ListColumn("warned", lambda one: "warned" if one["warned"] else "", extra=True),
)


def _left(item: Mapping[str, Any]) -> str:
    return span((datetime.fromisoformat(item["expires_at"]) - datetime.now(UTC)).total_seconds())


@command.command(name="list", cls=Command)
@click.option("--kind", type=click.Choice(KINDS), help="Only leases of this kind.")
@click.option("--within", callback=ahead, metavar="TIME", help="Only leases that expire within 30m, 2h, 7d.")
@click.option(
    "--limit", type=click.IntRange(1, 100_000), default=100, show_default=True, help="Number of leases to list."
)
@list_options(_COLUMNS)
def list_(target: Target, kind: str | None, within: str | None, limit: int, columns: tuple[ListColumn, ...]) -> None:
    """List leases, the soonest to expire first: of rendezvous points, subscriptions, replicas and peers together."""

    async def work() -> None:
        cursor, left = None, limit
        empty = "No lease expires by then." if within else "There are no leases."
        with ListPrinter(target, columns, empty=empty) as rows:
            async with target.client() as client:
                while left > 0:
                    size = min(PAGE, left)
                    page = await client.operating.leases(kind=kind, ends_before=within, cursor=cursor, limit=size)
                    for item in page["items"]:
                        rows.add(item)
                    left -= len(page["items"])
                    cursor = page["next"]
                    if cursor is None:
                        break
        if cursor is not None and not target.json:
            note(f"There are more, which expire later: --limit {limit * 10}")

    run(work())


@command.command(cls=Command)
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name", metavar="ID")
@click.option("--lease-s", type=click.IntRange(min=1), help="Seconds from now. Default: the granted duration.")
@domain_options
def renew(target: Target, kind: str, name: str, lease_s: int | None) -> None:
    """Renew the lease of one item of the list, by its KIND and ID, from now on.

    The lease never ends earlier than before. For rendezvous points and subscriptions this requires the right to change
    them; for replicas and peers, an operator's token.
    """
    if kind == "peer" and lease_s is not None:
        raise click.UsageError("The domain sets the duration of a peer's lease. Leave out --lease-s.")

    async def work() -> None:
        async with target.client() as client:
            lease = await _renewed(client, kind, name, lease_s)
        document = {"kind": kind, "id": name, "lease": {"granted_s": lease.granted_s, "expires_at": lease.expires_at}}
        target.show(document, f"renewed {kind} {name}: {lease}")

    run(work())


async def _renewed(client: Client, kind: str, name: str, lease_s: int | None) -> Lease:
    if kind == "peer":
        return Lease.of(await client.peers.renew(name))
    if kind == "subscription":
        lease_s = lease_s or _granted_s((await client.subscriptions.get(name)).lease)
        return await client.subscriptions.renew(name, lease_s)
    if kind == "intake":
        lease_s = lease_s or _granted_s(Lease.of((await client.intakes.get(name))["lease"]))
        return Lease.of((await client.intakes.renew(name, lease_s))["lease"])
    lease_s = lease_s or _granted_s((await client.rps.get(name)).lease)
    if kind == "replica":
        return (await client.replicas.join(name, lease_s=lease_s)).lease
    return await client.rps.renew(name, lease_s)


def _granted_s(lease: Lease) -> int | None:
    return round(lease.granted_s) or None
