"""`herald overlay`: the domain's part in the overlay of its federation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from herald.commands.common import Command, CommandGroup, Target, domain_options, run
from herald.commands.listing import ListColumn, ListPrinter, list_options, when
from herald.commands.output import ask

PAGE = 500
ZONES_SHOWN = 20
LOADS = {
    "sessions": "sessions",
    "events_in_per_s": "events/s accepted",
    "events_out_per_s": "events/s delivered",
    "bytes_per_s": "bytes/s delivered",
    "backlog": "events in backlogs",
    "links": "overlay links",
    "busy_permille": "thousandths of processors",
}
"""Kinds of load as people read them."""


@click.group(cls=CommandGroup, short_help="Join the overlay of a federation; list its domains and links.")
def command() -> None:
    """Take part in the overlay of a federation: domains find each other, and choose their links by themselves.

    \b
      herald overlay found            the first domain of a federation
      herald overlay join b.example   every other one: an active peer sponsors it
    """


@command.command(cls=Command)
@domain_options
def status(target: Target) -> None:
    """Show this domain's sponsor and founders, and how many domains and links there are. Requires a viewer's token."""

    async def work() -> None:
        async with target.client() as client:
            target.show(await client.overlay.status(), _status)

    run(work())


@command.command(cls=Command)
@domain_options
def found(target: Target) -> None:
    """Found an overlay: this domain is the first of a federation, and may sponsor its peers. Requires an administrator's token."""

    async def work() -> None:
        async with target.client() as client:
            target.show(await client.overlay.found(), _status)

    run(work())


@command.command(cls=Command)
@click.argument("sponsor", metavar="DOMAIN_OR_URL")
@domain_options
def join(target: Target, sponsor: str) -> None:
    """Join the overlay of a peer, which sponsors this domain. Requires an administrator's token."""

    async def work() -> None:
        async with target.client() as client:
            target.show(await client.overlay.join(sponsor), _status)

    run(work())


@command.command(cls=Command)
@click.option("--yes", is_flag=True, help="Do not ask.")
@domain_options
def leave(target: Target, yes: bool) -> None:
    """Leave the overlay: all its links end; peers and rendezvous points stay. Requires an administrator's token."""
    if not yes and not ask("End all overlay links of this domain?"):
        raise click.Abort

    async def work() -> None:
        async with target.client() as client:
            target.show(await client.overlay.leave(), "This domain takes part in no overlay.")

    run(work())


_LINKS = (
    ListColumn("peer", lambda one: one["peer"]),
    ListColumn(
        "state", lambda one: _link_state(one), lambda one: None if one["up"] and not one["suspected"] else "yellow"
    ),
    ListColumn("reason", lambda one: one["reason"]),
    ListColumn("rtt", lambda one: _rtt(one).strip()),
    ListColumn("score", lambda one: f"{min(score['score'] for score in one['scores']):+.2f}" if one["scores"] else ""),
    ListColumn("since", lambda one: when(one["since"])),
)


def _link_state(link: Mapping[str, Any]) -> str:
    return ("up" if link["up"] else "down") + (", suspected" if link["suspected"] else "")


@command.command(cls=Command)
@click.option("--ended", is_flag=True, help="Also links that ended lately.")
@list_options(_LINKS)
def links(target: Target, ended: bool, columns: tuple[ListColumn, ...]) -> None:
    """List the overlay links with the reason for each. Requires a viewer's token."""

    async def work() -> None:
        with ListPrinter(target, columns, empty="There are no overlay links.") as rows:
            async with target.client() as client:
                for one in await client.overlay.links():
                    if one["up"] or ended:
                        rows.add(one)

    run(work())


_DOMAINS = (
    ListColumn("domain", lambda one: one["name"]),
    ListColumn("linked", lambda one: "*" if one["linked"] else ""),
    ListColumn("zone", lambda one: one["zone"]),
    ListColumn("class", lambda one: str(one["capacity"])),
    ListColumn("sponsor", lambda one: one["sponsor"] or "founder"),
    ListColumn("sessions", lambda one: None if one["load"] is None else one["load"]["sessions"]),
    ListColumn("events/s", lambda one: _events_per_s(one["load"])),
    ListColumn("state", lambda one: "suspected" if one["suspected"] else "", lambda one: "yellow"),
)


def _events_per_s(load: Mapping[str, Any] | None) -> str:
    return "" if load is None else f"{load['events_in_per_s'] + load['events_out_per_s']}"


@command.command(name="map", cls=Command)
@click.option("--search", help="Only domains whose name contains this.")
@click.option("--zone", help="Only domains of this zone.")
@list_options(_DOMAINS)
def map_(target: Target, search: str | None, zone: str | None, columns: tuple[ListColumn, ...]) -> None:
    """List all domains of the overlay, each with its zone and sponsor. Requires a viewer's token."""

    async def work() -> None:
        cursor = None
        with ListPrinter(target, columns, empty="The overlay has no such domain.") as rows:
            async with target.client() as client:
                while True:
                    page = await client.overlay.domains(search=search, zone=zone, cursor=cursor, limit=PAGE)
                    for item in page["items"]:
                        rows.add(item)
                    cursor = page["next"]
                    if cursor is None:
                        break

    run(work())


@command.command(cls=Command)
@click.argument("domain")
@domain_options
def explain(target: Target, domain: str) -> None:
    """Show all that is known of DOMAIN: its record, its sponsors, and why there is a link with it or none. Requires a viewer's token."""

    async def work() -> None:
        async with target.client() as client:
            target.show(await client.overlay.explain(domain), _explained)

    run(work())


def _status(found: Mapping[str, Any]) -> list[str]:
    if not found["joined"]:
        return [f"{found['domain']} takes part in no overlay: herald overlay join DOMAIN, or herald overlay found."]
    by = f"sponsored by {found['sponsor']}" if found["sponsor"] else "a founder"
    running = "" if found["running"] else " The overlay is not running at the moment."
    zones = [f"  {one['zone'] or '(no zone)'}: {one['domains']}" for one in found["zones"][:ZONES_SHOWN]]
    return [
        f"{found['domain']}, {by}, since {found['joined_at']}; links with {found['mode']} domains.{running}",
        f"{found['domains']} domains, {found['links']} links; {found['sponsored_today']} of {found['quota']} sponsorships today.",
        *(
            f"Founder {one['name']}, {one['fingerprint']}, learned from {one['learned_from']}"
            for one in found["founders"]
        ),
        *(["Domains by zone:", *zones] if len(zones) > 1 else []),
        *([] if found["problem"] is None else [f"It cannot run: {found['problem']}"]),
        *([] if found["picture"] is None else _picture(found["picture"])),
    ]


def _picture(picture: Mapping[str, Any]) -> list[str]:
    """Describe figures of the whole, suspicions, own health and scores."""
    whole, health = picture["whole"], picture["health"]
    rows = [f"  {what}: {_figure(whole['sums'][field], whole['maxima'][field])}" for field, what in LOADS.items()]
    suspected = [
        f"  {one['domain']} since {one['since']}, accused by {', '.join(one['accusers']) or 'nobody now'}"
        for one in picture["suspected"]
    ]
    accused = f"; accused by {', '.join(health['accused_by'])}" if health["accused_by"] else ""
    return [
        f"{whole['live']} of {whole['known']} domains are not suspected; {whole['reporting']['value']} state their load "
        f"({_basis(whole['reporting'])}).",
        *rows,
        f"Own health: {health['state']}; {health['silent']} of {health['observed']} observed domains are silent{accused}.",
        *(["Suspected:", *suspected] if suspected else []),
        *(["Scores:", *map(_score, picture["scores"])] if picture["scores"] else []),
    ]


def _figure(total: Mapping[str, Any], most: Mapping[str, Any]) -> str:
    disputed = ", disputed" if total["disputed"] else ""
    return f"{total['value']}, at most {most['value']} at one domain ({_basis(total)}{disputed})"


def _basis(figure: Mapping[str, Any]) -> str:
    return f"coverage {figure['coverage']:.0%}, oldest {figure['oldest_s']} s"


def _score(one: Mapping[str, Any]) -> str:
    effects = ", ".join(one["effects"]) or "no effect"
    held = f", no link for {one['held_back_s']} s" if one["held_back_s"] else ""
    return f"  {one['peer']}: {one['score']:+.2f} ({one['reason'] or 'no fault'}); {effects}{held}"


def _rtt(link: Mapping[str, Any]) -> str:
    return "      - ms" if link["rtt_ms"] is None else f"{link['rtt_ms']:7.1f} ms"


def _link(link: Mapping[str, Any]) -> str:
    scores = f"  score {min(one['score'] for one in link['scores']):+.2f}" if link["scores"] else ""
    return f"{link['since']}  {_link_state(link)}  {link['reason']}  {_rtt(link)}  {link['peer']}{scores}"


def _explained(found: Mapping[str, Any]) -> list[str]:
    chain = " < ".join([found["name"], *found["sponsors"]])
    link = found["link"]
    return [
        f"{found['name']}  {found['url'] or 'only calls others'}  zone {found['zone'] or '-'}  class {found['capacity']}",
        f"  fingerprint {found['fingerprint']}",
        f"  record {found['version']}, issued {found['issued_at']}, until {found['expires_at']}"
        + ("" if found["held"] else " (expired)"),
        f"  sponsors: {chain}" + ("" if found["rooted"] else " (no founder that is trusted here)"),
        *(
            [f"  convicted {found['convicted_at']}: it signed contradictory statements"]
            if found["convicted_at"]
            else []
        ),
        f"  as a peer: {found['peer'] or 'none'}",
        "  no link lately" if link is None else f"  link: {_link(link)}",
        *([] if found["load"] is None else [f"  load, {found['load']['age_s']} s ago: {_load(found['load'])}"]),
        *(
            []
            if found["suspicion"] is None
            else [f"  suspected since {found['suspicion']['since']}: it does not answer"]
        ),
        *(f"  score{_score(one).replace(found['name'], '', 1)}" for one in found["scores"]),
    ]


def _load(load: Mapping[str, Any]) -> str:
    return ", ".join(f"{load[field]} {what}" for field, what in LOADS.items())
