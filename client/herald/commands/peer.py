"""`herald peer`: other domains that this one exchanges events with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from herald.answers import reading
from herald.client import Client
from herald.commands.common import Command, CommandGroup, F, Target, domain_options, run
from herald.commands.listing import ListColumn, ListPrinter, list_options, when
from herald.commands.output import ask, note, say
from herald.commands.output import document as print_document
from herald.errors import InputError
from herald.leases import Lease

PAGE = 100
DOCUMENT_CHARS_MAX = 256 * 1024  # characters of a domain's document; usually about 12 KiB
_file = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)


@click.group(
    cls=CommandGroup,
    short_help="Manage peers: other domains to exchange events with.",
    aliases={"trust": "change", "delete": "remove"},
)
def command() -> None:
    """Manage peers: other domains to exchange events with. Decisions require an administrator's token.

    Both administrators must agree. Each sees the other domain's fingerprint. Compare both over the telephone, or the
    safety number, which is the same for both:

    \b
    herald peer add https://b.example     one administrator
    herald peer approve a.example         the other
    """


def trust_options(function: F) -> F:
    """Add --push, --host, --gossip, the rates and --note."""
    for name, about in (
        ("--requests-per-s", "Requests that the peer may send per second."),
        ("--bytes-per-s", "Bytes of events that the peer may send per second."),
        ("--events-per-s", "Events that the peer may send per second."),
    ):
        function = click.option(name, type=click.IntRange(min=1), help=about)(function)
    for name, about in (
        ("--gossip/--no-gossip", "Whether the peer takes part in gossip. Default: yes."),
        ("--host/--no-host", "Whether the peer may have this domain host replicas. Default: no."),
        ("--push/--no-push", "Whether the peer may send this domain events. Default: yes."),
    ):
        function = click.option(name, default=None, help=about)(function)
    return click.option("--note", help="Note for administrators.")(function)


@command.command(cls=Command)
@click.argument("address", metavar="URL", required=False)
@click.option("--fingerprint", help="Fingerprint from the domain's administrator; if it matches, there is no question.")
@click.option(
    "--document", type=_file, help="Saved file of /.well-known/herald of a domain that cannot be reached from here."
)
@click.option(
    "--yes",
    is_flag=True,
    help="Do not ask. Use this only where nobody can intercept the connection to the other domain.",
)
@trust_options
@domain_options
def add(
    target: Target, address: str | None, fingerprint: str | None, document: Path | None, yes: bool, **trust: Any
) -> None:
    """Ask the domain at URL to be a peer; if it has asked already, this approves it."""
    if address is None and document is None:
        raise click.UsageError("Give the domain: its URL, or --document FILE.")
    published = None if document is None else _published(document)

    async def work() -> None:
        async with target.client() as client:
            seen = await client.peers.look(address, document=published)
            stated = fingerprint or _compared(seen, yes)
            peer = await client.peers.add(address, fingerprint=stated, document=published, **trust)
            await _show(target, client, peer)

    run(work())


@command.command(cls=Command)
@click.argument("name")
@click.option("--fingerprint", help="Fingerprint from the domain's administrator; if it matches, there is no question.")
@click.option(
    "--yes",
    is_flag=True,
    help="Do not ask. Use this only where nobody can intercept the connection to the other domain.",
)
@click.option("--peer-url", help="Address of the domain, if not the one in its document.")
@trust_options
@domain_options
def approve(target: Target, name: str, fingerprint: str | None, yes: bool, peer_url: str | None, **trust: Any) -> None:
    """Approve a domain that asks to be a peer."""

    async def work() -> None:
        async with target.client() as client:
            peer = await client.peers.get(name)
            if peer["state"] == "asked":
                stated = fingerprint or _compared({**peer, "domain": name}, yes)
                peer = await client.peers.approve(name, fingerprint=stated, url=peer_url, **trust)
            await _show(target, client, peer)

    run(work())


_STATES = {"asked": "yellow", "suspended": "yellow", "quarantined": "red"}
_COLUMNS = (
    ListColumn("name", lambda peer: peer["name"]),
    ListColumn("state", lambda peer: peer["state"], lambda peer: _STATES.get(peer["state"])),
    ListColumn("may", lambda peer: ",".join(name for name in ("push", "host", "gossip") if peer[name])),
    ListColumn("problem", lambda peer: _problem(peer), lambda peer: "red" if peer.get("problem") else "yellow"),
    ListColumn("url", lambda peer: peer["url"]),
    ListColumn("ends", lambda peer: when((peer.get("lease") or {}).get("expires_at")), extra=True),
    ListColumn("note", lambda peer: peer["note"], extra=True),
)


def _problem(peer: dict[str, Any]) -> str:
    problem = peer.get("problem")
    if problem:
        return f"{problem['kind']} since {when(problem['since'])}"
    return {"suspends": "has suspended this domain", "leaves": "has left", None: "no contact yet"}.get(
        peer["theirs"], ""
    )


@command.command(name="list", cls=Command)
@list_options(_COLUMNS)
def list_(target: Target, columns: tuple[ListColumn, ...]) -> None:
    """List the peers, and the domains that ask to be peers."""

    async def work() -> None:
        with ListPrinter(target, columns, empty="There are no peers yet. Add one: herald peer add URL") as rows:
            async with target.client() as client:
                for peer in await client.peers.all():
                    rows.add(peer)

    run(work())


@command.command(cls=Command)
@click.argument("name")
@domain_options
def show(target: Target, name: str) -> None:
    """Show one peer: its state, fingerprint and permissions, and what to do next."""

    async def work() -> None:
        async with target.client() as client:
            peer = await client.peers.get(name)
            target.show(peer, _described)
            if not target.json:
                say(await _next(client, peer))

    run(work())


@command.command(cls=Command)
@click.argument("name")
@trust_options
@click.option("--peer-url", help="Address of the peer.")
@domain_options
def change(target: Target, name: str, peer_url: str | None, **trust: Any) -> None:
    """Change what a peer may do and how much it may send."""
    if peer_url is None and all(value is None for value in trust.values()):
        raise click.UsageError("Give something to change: --push, --no-host, --events-per-s 1000 ...")

    async def work() -> None:
        async with target.client() as client:
            peer = await client.peers.change(name, url=peer_url, **trust)
        target.show(peer, _line)

    run(work())


@command.command(cls=Command)
@click.argument("name")
@click.option("--note", help="Reason, for administrators.")
@domain_options
def suspend(target: Target, name: str, note: str | None) -> None:
    """Stop all exchange with a peer until it is resumed; its tokens are refused meanwhile."""

    async def work() -> None:
        async with target.client() as client:
            await _show(target, client, await client.peers.suspend(name, note=note))

    run(work())


@command.command(cls=Command)
@click.argument("name")
@click.option("--note", help="Note for administrators.")
@domain_options
def resume(target: Target, name: str, note: str | None) -> None:
    """Resume a suspended peer; events that were missed meanwhile are exchanged."""

    async def work() -> None:
        async with target.client() as client:
            await _show(target, client, await client.peers.resume(name, note=note))

    run(work())


@command.command(cls=Command)
@click.argument("name")
@domain_options
def retry(target: Target, name: str) -> None:
    """Retry a peer now, whatever the pause. Requires an operator's token."""

    async def work() -> None:
        async with target.client() as client:
            await _show(target, client, await client.peers.retry(name))

    run(work())


@command.command(cls=Command)
@click.argument("name")
@click.argument("rp")
@click.option("--after", metavar="CURSOR", help="Only events after this cursor. Default: all held events.")
@domain_options
def replay(target: Target, name: str, rp: str, after: str | None) -> None:
    """Offer a peer the events of a rendezvous point again, because it lost them. Requires an operator's token."""

    async def work() -> None:
        async with target.client() as client:
            done = await client.peers.replay(name, rp, after=after)
        target.show(done, lambda done: f"{name} is offered the events after {done['after']} again")

    run(work())


@command.command(cls=Command)
@click.argument("name")
@domain_options
def renew(target: Target, name: str) -> None:
    """Renew the lease of a silent peer from now, so that it is not removed. Requires an operator's token."""

    async def work() -> None:
        async with target.client() as client:
            peer = await client.peers.renew(name)
        target.show(peer, lambda peer: f"renewed {name}: {Lease.of(peer)}")

    run(work())


_LINKS = (
    ListColumn("rp", lambda one: one["name"] or one["rp"]),
    ListColumn("link", lambda one: one["link"]),
    ListColumn("peer-lacks", lambda one: one["backlog"]),
    ListColumn("lacks-here", lambda one: one["ahead"]),
    ListColumn("detail", lambda one: one["detail"]),
    ListColumn("rp-id", lambda one: one["rp"]),
)


@command.command(cls=Command)
@click.argument("name")
@list_options(_LINKS)
def links(target: Target, name: str, columns: tuple[ListColumn, ...]) -> None:
    """List the rendezvous points shared with a peer, and how many events each side lacks. Requires a viewer's token."""

    async def work() -> None:
        cursor = None
        empty = f"Nothing is shared with {name}. Invite it: herald replica invite RP {name}"
        with ListPrinter(target, columns, empty=empty) as rows:
            async with target.client() as client:
                while True:
                    page = await client.peers.links(name, cursor=cursor, limit=PAGE)
                    for item in page["items"]:
                        rows.add(item)
                    cursor = page["next"]
                    if cursor is None:
                        break

    run(work())


@command.command(cls=Command)
@click.argument("name")
@domain_options
def remove(target: Target, name: str) -> None:
    """Remove a peer, or decline a domain that asks. Its events are kept."""

    async def work() -> None:
        async with target.client() as client:
            await client.peers.remove(name)
        target.show(
            {"removed": name},
            f"{name} is no longer a peer. To peer again, both administrators must add the other domain.",
        )

    run(work())


@command.command(cls=Command)
@domain_options
def document(target: Target) -> None:
    """Print this domain's document, for the administrator of a domain that cannot reach it (--document FILE).

    Needs no token; the fingerprint in it still has to be compared.
    """

    async def work() -> None:
        async with target.client() as client:
            about = await client.about()
        print_document({"domain": about.get("domain"), "document": about.get("document")})

    run(work())


def in_groups(fingerprint: str) -> str:
    """Return a fingerprint in groups, as people read it aloud."""
    return " ".join(fingerprint[at : at + 4] for at in range(0, len(fingerprint), 4))


def _published(path: Path) -> dict[str, Any]:
    """Return a domain's published document from a file. Raises InputError."""
    with click.open_file(str(path)) as file:
        text = file.read(DOCUMENT_CHARS_MAX + 1)
    try:
        members = json.loads(text) if len(text) <= DOCUMENT_CHARS_MAX else None
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, dict):
        raise InputError(
            f"{path} does not contain a domain document. Make one at that domain: herald peer document > FILE"
        )
    return members


def _compared(seen: dict[str, Any], yes: bool) -> str:
    """Return the fingerprint after a person has confirmed it. Asks on stderr: stdout is for results."""
    if not yes:
        with reading("The answer"):
            note(*_comparison(seen))
        if not ask("Does its administrator see the same?"):
            raise InputError("Nothing was changed. Its administrator can show the fingerprint with: herald doctor")
    return str(seen["fingerprint"])


def _comparison(seen: dict[str, Any]) -> list[str]:
    return [
        f"{seen['domain']} at {seen['url']}",
        f"  its fingerprint  {seen['fingerprint_shown']}",
        f"  your own         {seen['own_fingerprint_shown']}",
        f"  safety number    {seen['safety_number']}",
        "Compare them with its administrator, over the telephone or face to face: the safety number is the same for "
        "both.",
    ]


async def _show(target: Target, client: Client, peer: dict[str, Any]) -> None:
    """Print the peer after a decision, and what to do next."""
    target.show(peer, "" if target.json else await _next(client, peer))


async def _next(client: Client, peer: dict[str, Any]) -> str:
    """Return the state of the peering, and who does what next."""
    name, theirs = peer["name"], peer["theirs"]
    if peer["state"] == "asked":
        return f"{name} asks to be a peer. Compare fingerprints, then: herald peer approve {name}"
    if peer["state"] == "suspended":
        return f"{name} is suspended: nothing is exchanged with it. To resume it: herald peer resume {name}"
    if peer["state"] == "active":
        if theirs == "suspends":
            return (
                f"{name} is your peer, but has suspended this domain. Contact its administrator; events wait meanwhile."
            )
        if trouble := _trouble(peer):
            advice = _advice(peer) or "This domain retries by itself."
            return f"{name} is your peer: both have agreed, but events wait: {trouble} {advice}"
        return f"{name} is your peer: both have agreed, and events can be exchanged. Next: herald replica join ID"
    if theirs == "leaves":
        return f"{name} declined, or has removed this domain. Contact its administrator, then: herald peer add {peer['url']}"
    own = (await client.about()).get("domain", "NAME")
    problem = peer["hello"]["problem"]
    trouble = f" The notice to it failed and is retried: {problem}" if problem else ""
    return (
        f"Waiting for {name}'s administrator, who runs: herald peer approve {own}. "
        f"Compare fingerprints: theirs is {peer['fingerprint_shown']}, yours {peer['own_fingerprint_shown']}.{trouble}"
    )


def _line(peer: dict[str, Any]) -> str:
    """Return a peer as one line."""
    may = "".join(f" {name}" for name in ("push", "host", "gossip") if peer[name]) or " nothing"
    said = {"suspends": "has suspended this domain", "leaves": "has left", None: "no contact yet"}.get(
        peer["theirs"], ""
    )
    problem = peer.get("problem")
    trouble = f"{problem['kind']} since {problem['since']}" if problem else ""
    parts = [f"{peer['name']:30} {peer['state']:9} may{may}", peer["url"], said, trouble, peer["note"]]
    return "  ".join(part for part in parts if part)


def _heard(peer: dict[str, Any]) -> str:
    """Return the times of the last contact in each direction."""
    contact = peer.get("contact") or {}
    parts = [f"its last {what} {at}" for what in ("request", "answer") if (at := contact.get(f"{what}_at"))]
    return " ".join([peer["heard_at"] or "never", *([f"({', '.join(parts)})"] if parts else [])])


def _trouble(peer: dict[str, Any]) -> str:
    """Return why the peer receives nothing, and since when; empty while delivery works."""
    problem = peer.get("problem")
    if problem is None:
        return str((peer["delivery"] or {}).get("detail") or "")
    until = f", until {problem['until']}" if problem["until"] else ""
    return f"{problem['kind']} since {problem['since']}{until}: {problem['detail']}"


def _advice(peer: dict[str, Any]) -> str:
    """Return what to do about the problem."""
    return str((peer.get("problem") or {}).get("advice", "")).replace("NAME", peer["name"])


def _described(peer: dict[str, Any]) -> list[str]:
    may = ", ".join(name for name in ("push", "host", "gossip") if peer[name]) or "nothing"
    rates = f"{peer['events_per_s']} events, {peer['bytes_per_s']} bytes, {peer['requests_per_s']} requests per second"
    lines = [
        ("name", peer["name"]),
        ("url", peer["url"]),
        ("state", peer["state"]),
        ("it states", peer["theirs"] or "nothing yet"),
        ("fingerprint", peer["fingerprint_shown"]),
        ("yours", peer["own_fingerprint_shown"]),
        ("number", peer["safety_number"]),
        ("may", may),
        ("rates", rates),
        ("heard", _heard(peer)),
        ("until", f"{peer['lease']['expires_at']} unless there is contact"),
        ("note", peer["note"]),
        ("trouble", peer["hello"]["problem"] or _trouble(peer)),
        ("to do", _advice(peer)),
    ]
    return [f"{key:11} {value}" for key, value in lines if value]
