"""`herald path`: the domains that one event passed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from herald.commands.common import Command, Target, domain_options, run

_LINKS = {"eager": "eager link", "lazy": "lazy link", "stopped": "stopped", None: "no link"}


@click.command(cls=Command, short_help="Show the domains that an event passed.")
@click.argument("rp", metavar="RP")
@click.argument("place", metavar="CURSOR")
@click.option(
    "--ask",
    is_flag=True,
    help="Ask the domains that these events are exchanged with how it came to them; requires a viewer's token.",
)
@domain_options
def command(target: Target, rp: str, place: str, ask: bool) -> None:
    """Show the domains that the event at CURSOR (or at an offset) of RP passed on its way to this domain, and those that hold it.

    Domains state the paths; nothing of them is proved. `herald proof` proves who published the event.
    """
    offset = int(place) if place.isascii() and place.isdigit() else None

    async def work() -> None:
        async with target.client() as client:
            found = await client.path(rp, cursor=place if offset is None else None, offset=offset, ask=ask)
        target.show(found, _path)

    run(work())


def _path(found: Mapping[str, Any]) -> list[str]:
    origin = found["origin"] or "unknown: its seal has left the history"
    hops = [
        f"  {hop['source']} > {hop['target']}  {hop['at'] or '-'}  stated by {', '.join(hop['stated_by'])}"
        for hop in found["hops"]
    ]
    return [
        f"Event {found['sequence']} of the feed {found['feed']} at {found['rp']}; origin {origin}",
        f"Way here: {' > '.join(found['route']) or 'the event is not here'}",
        *(["Hops:", *hops] if hops else []),
        *(["Domains:", *map(_domain, found["domains"])] if found["domains"] else []),
    ]


def _domain(one: Mapping[str, Any]) -> str:
    held = {True: "holds it", False: "lacks it", None: "not known whether it holds it"}[one["held"]]
    role = f"{one['role']}, {_LINKS.get(one['link'], one['link'])}, " if one["role"] else ""
    told = f"; so stated by {', '.join(one['known_from'])}" if one["known_from"] else ""
    detail = f" ({one['detail']})" if one["detail"] else ""
    return f"  {one['domain']}: {role}{held}{told}{detail}"
