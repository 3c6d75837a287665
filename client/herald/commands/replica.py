"""`herald replica`: hold replicas of other domains' rendezvous points, and invite others to yours."""

from __future__ import annotations

import re
from typing import Any

import click

from herald.commands.common import Command, CommandGroup, Target, domain_options, history_of, history_options, run
from herald.commands.listing import ListColumn, ListPrinter, list_options, when

_ID = re.compile(r"[a-z2-7]{26}")


@click.group(cls=CommandGroup)
def command() -> None:
    """Hold replicas of other domains' rendezvous points.

    A replica serves everything that its home serves, under the home's policy, and continues while the home cannot be
    reached.
    """


@command.command(cls=Command)
@click.argument("rp", metavar="ID")
@click.option("--via", help="Peer to ask: the home, or any with a replica. Default: all peers, one after the other.")
@click.option(
    "--lease-s", type=click.IntRange(min=1), help="Length of each lease, seconds; it is renewed. Default: the domain's."
)
@history_options
@domain_options
def join(target: Target, rp: str, via: str | None, lease_s: int | None, **bounds: Any) -> None:
    """Hold a replica of the rendezvous point with this ID. Its home decides by its policy (replicate).

    Names are known only at the home; `herald rp show NAME` prints the id there.
    """
    if not _ID.fullmatch(rp):
        raise click.UsageError(
            f"{rp} is not an id (26 letters and digits). Show the id at the home: herald rp show NAME"
        )

    async def work() -> None:
        async with target.client() as client:
            made = await client.replicas.join(rp, via=via, lease_s=lease_s, history=history_of(**bounds))
        lines = [f"joined {made.name or made.id}", f"home   {made.document.get('home', '')}"]
        renewed = f"lease  {made.lease}, renewed until you leave: herald replica leave {made.id}"
        target.show(made.document, lambda _: [*lines, renewed])

    run(work())


_COLUMNS = (
    ListColumn("name", lambda one: one.name),
    ListColumn("home", lambda one: one.document.get("home")),
    ListColumn("events", lambda one: one.document.get("offset", 0)),
    ListColumn("ends", lambda one: when(one.lease.expires_at)),
    ListColumn("id", lambda one: one.id),
)
_PARTICIPANTS = (
    ListColumn("domain", lambda one: one.get("domain")),
    ListColumn("role", lambda one: one.get("role")),
    ListColumn("link", lambda one: one.get("link")),
    ListColumn("lacks", lambda one: one.get("backlog")),
    ListColumn(
        "holds", lambda one: " ".join(f"{feed[:6]}={last}" for feed, last in sorted((one.get("vector") or {}).items()))
    ),
    ListColumn("url", lambda one: one.get("url")),
)


@command.command(name="list", cls=Command)
@click.argument("rp", required=False)
@list_options(_COLUMNS)
def list_(target: Target, rp: str | None, columns: tuple[ListColumn, ...]) -> None:
    """List this domain's replicas; with RP, the domains that participate in that rendezvous point."""

    async def work() -> None:
        if rp is not None:
            with ListPrinter(target, _PARTICIPANTS, empty="No domain participates.") as rows:
                async with target.client() as client:
                    for one in await client.replicas.participants(rp):
                        rows.add(one)
            return
        empty = "There are no replicas yet. Join one: herald replica join ID --via PEER"
        with ListPrinter(target, columns, empty=empty) as rows:
            async with target.client() as client:
                async for replica in client.replicas.list():
                    rows.add(replica.document, replica)

    run(work())


@command.command(cls=Command)
@click.argument("rp")
@domain_options
def leave(target: Target, rp: str) -> None:
    """End this domain's replica of the rendezvous point with the id RP. The rendezvous point continues elsewhere."""

    async def work() -> None:
        async with target.client() as client:
            await client.replicas.leave(rp)
        target.show({"rp": rp, "left": True}, f"left {rp}")

    run(work())


@command.command(cls=Command)
@click.argument("rp")
@click.argument("peer")
@domain_options
def invite(target: Target, rp: str, peer: str) -> None:
    """Have PEER hold a replica of RP (id or name), a rendezvous point of this domain.

    The policy of RP must allow the peer to replicate, and the peer must trust this domain to host.
    """

    async def work() -> None:
        async with target.client() as client:
            found = await client.replicas.invite(rp, peer)
        target.show(found.document, f"{peer} holds a replica of {found.name or found.id}")

    run(work())
