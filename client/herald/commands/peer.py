"""`herald peer`: other domains that this one exchanges events with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from herald.answers import reading
from herald.client import Client
from herald.commands.common import Command, F, Group, Target, domain_options, run
from herald.commands.output import ask, note, say
from herald.commands.output import document as print_document
from herald.errors import InputError
from herald.leases import Lease

PAGE = 100
DOCUMENT_CHARS_MAX = 256 * 1024  # of what a domain publishes; about 12 KiB
_file = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)


@click.group(cls=Group, short_help="Agree with other domains to exchange events.")
def command() -> None:
    """Agree with other domains to exchange events. Deciding needs an administrator's token.

    Both administrators have to agree. Each sees the other domain's fingerprint; compare both over the telephone, or the
    safety number, which is the same at both:

    \b
    herald peer add https://b.example     one of you
    herald peer approve a.example         the other
    """


def trust_options(function: F) -> F:
    """Add --push, --host, --gossip, the rates and --note."""
    for name, about in (
        ("--requests-per-s", "Requests that it may send per second."),
        ("--bytes-per-s", "Bytes of events that it may send per second."),
        ("--events-per-s", "Events that it may send per second."),
    ):
        function = click.option(name, type=click.IntRange(min=1), help=about)(function)
    for name, about in (
        ("--gossip/--no-gossip", "It takes part in gossip. Default: it does."),
        ("--host/--no-host", "It may have this domain host replicas. Default: it may not."),
        ("--push/--no-push", "It may send this domain events. Default: it may."),
    ):
        function = click.option(name, default=None, help=about)(function)
    return click.option("--note", help="For administrators to read.")(function)


@command.command(cls=Command)
@click.argument("address", metavar="URL", required=False)
@click.option(
    "--fingerprint", help="What its administrator told you: it is added without a question if it is this one."
)
@click.option("--document", type=_file, help="What it publishes at /.well-known/herald, saved: it cannot be reached.")
@click.option("--yes", is_flag=True, help="Do not ask. Only where nobody can stand between you and the other domain.")
@trust_options
@domain_options
def add(
    target: Target, address: str | None, fingerprint: str | None, document: Path | None, yes: bool, **trust: Any
) -> None:
    """Ask the domain at URL to be a peer; if it asked already, this approves it."""
    if address is None and document is None:
        raise click.UsageError("Say which domain: its URL, or --document FILE.")
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
@click.option(
    "--fingerprint", help="What its administrator told you: it is approved without a question if it is this one."
)
@click.option("--yes", is_flag=True, help="Do not ask. Only where nobody can stand between you and the other domain.")
@click.option("--peer-url", help="Where it is reached, if not at the address that it says.")
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


@command.command(name="list", cls=Command)
@domain_options
def list_(target: Target) -> None:
    """List the peers, and the domains that ask to be."""

    async def work() -> None:
        async with target.client() as client:
            peers = await client.peers.all()
        for peer in peers:
            target.show(peer, _line)
        if not peers and not target.json:
            say("There are no peers yet. Add one: herald peer add URL")

    run(work())


@command.command(cls=Command)
@click.argument("name")
@domain_options
def show(target: Target, name: str) -> None:
    """Show one peer: its state, its fingerprint, what it may do, and what to do next."""

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
@click.option("--peer-url", help="Where it is reached.")
@domain_options
def trust(target: Target, name: str, peer_url: str | None, **trust: Any) -> None:
    """Change what a peer may do and how much it may send."""
    if peer_url is None and all(value is None for value in trust.values()):
        raise click.UsageError("Say what to change: --push, --no-host, --events-per-s 1000 ...")

    async def work() -> None:
        async with target.client() as client:
            peer = await client.peers.change(name, url=peer_url, **trust)
        target.show(peer, _line)

    run(work())


@command.command(cls=Command)
@click.argument("name")
@click.option("--note", help="Why, for administrators to read.")
@domain_options
def suspend(target: Target, name: str, note: str | None) -> None:
    """Exchange nothing with a peer until it is resumed; its tokens are refused meanwhile."""

    async def work() -> None:
        async with target.client() as client:
            await _show(target, client, await client.peers.suspend(name, note=note))

    run(work())


@command.command(cls=Command)
@click.argument("name")
@click.option("--note", help="For administrators to read.")
@domain_options
def resume(target: Target, name: str, note: str | None) -> None:
    """Take a suspension back; what was missed meanwhile flows."""

    async def work() -> None:
        async with target.client() as client:
            await _show(target, client, await client.peers.resume(name, note=note))

    run(work())


@command.command(cls=Command)
@click.argument("name")
@domain_options
def retry(target: Target, name: str) -> None:
    """Try a peer again now, whatever was waited for. An operator's token is enough."""

    async def work() -> None:
        async with target.client() as client:
            await _show(target, client, await client.peers.retry(name))

    run(work())


@command.command(cls=Command)
@click.argument("name")
@click.argument("rp")
@click.option("--after", metavar="CURSOR", help="Only what comes after this cursor. Default: all that is held.")
@domain_options
def replay(target: Target, name: str, rp: str, after: str | None) -> None:
    """Offer a peer the events of a rendezvous point again, because it lost them. An operator's token is enough."""

    async def work() -> None:
        async with target.client() as client:
            done = await client.peers.replay(name, rp, after=after)
        target.show(done, lambda done: f"{name} is offered again what comes after {done['after']}")

    run(work())


@command.command(cls=Command)
@click.argument("name")
@domain_options
def renew(target: Target, name: str) -> None:
    """Keep a peer that is silent from being forgotten: its lease counts from now. An operator's token is enough."""

    async def work() -> None:
        async with target.client() as client:
            peer = await client.peers.renew(name)
        target.show(peer, lambda peer: f"renewed {name}: {Lease.of(peer)}")

    run(work())


@command.command(cls=Command)
@click.argument("name")
@domain_options
def links(target: Target, name: str) -> None:
    """List what is shared with a peer, by rendezvous point, and how many events each side lacks. A viewer's token is enough."""

    async def work() -> None:
        cursor, empty = None, True
        async with target.client() as client:
            while True:
                page = await client.peers.links(name, cursor=cursor, limit=PAGE)
                for item in page["items"]:
                    empty = False
                    target.show(item, _link)
                cursor = page["next"]
                if cursor is None:
                    break
        if empty and not target.json:
            note(f"Nothing is shared with {name}. Invite it: herald replica invite RP {name}")

    run(work())


@command.command(cls=Command)
@click.argument("name")
@domain_options
def remove(target: Target, name: str) -> None:
    """Remove a peer, or decline a domain that asks. What it sent stays."""

    async def work() -> None:
        async with target.client() as client:
            await client.peers.remove(name)
        target.show({"removed": name}, f"{name} is no peer any more. To begin anew, both of you add each other.")

    run(work())


@command.command(cls=Command)
@domain_options
def document(target: Target) -> None:
    """Print what this domain publishes of itself, for the administrator of one that cannot reach it (--document FILE).

    Needs no token; the fingerprint in it still has to be compared.
    """

    async def work() -> None:
        async with target.client() as client:
            about = await client.about()
        print_document({"domain": about.get("domain"), "document": about.get("document")})

    run(work())


def in_groups(fingerprint: str) -> str:
    """A fingerprint as people read it to each other."""
    return " ".join(fingerprint[at : at + 4] for at in range(0, len(fingerprint), 4))


def _published(path: Path) -> dict[str, Any]:
    """What a domain published, from a file. Raises InputError."""
    with click.open_file(str(path)) as file:
        text = file.read(DOCUMENT_CHARS_MAX + 1)
    try:
        members = json.loads(text) if len(text) <= DOCUMENT_CHARS_MAX else None
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, dict):
        raise InputError(f"{path} does not hold what a domain publishes. Make it there: herald peer document > FILE")
    return members


def _compared(seen: dict[str, Any], yes: bool) -> str:
    """The fingerprint, once somebody says that it is the right one. Asks on stderr: the output stays the result's."""
    if not yes:
        with reading("The answer"):
            note(*_comparison(seen))
        if not ask("Is that what its administrator sees?"):
            raise InputError("Nothing was changed. Its administrator sees the fingerprint with: herald doctor")
    return str(seen["fingerprint"])


def _comparison(seen: dict[str, Any]) -> list[str]:
    return [
        f"{seen['domain']} at {seen['url']}",
        f"  its fingerprint  {seen['fingerprint_shown']}",
        f"  your own         {seen['own_fingerprint_shown']}",
        f"  safety number    {seen['safety_number']}",
        "Compare them with its administrator, over the telephone or face to face: the safety number is the same for both.",
    ]


async def _show(target: Target, client: Client, peer: dict[str, Any]) -> None:
    """The peer after a decision, and what to do next."""
    target.show(peer, "" if target.json else await _next(client, peer))


async def _next(client: Client, peer: dict[str, Any]) -> str:
    """Where the peering stands, and who does what next."""
    name, theirs = peer["name"], peer["theirs"]
    if peer["state"] == "asked":
        return f"{name} asks to be a peer. Compare fingerprints, then: herald peer approve {name}"
    if peer["state"] == "suspended":
        return f"{name} is suspended: nothing is exchanged with it. To go on: herald peer resume {name}"
    if peer["state"] == "active":
        if theirs == "suspends":
            return (
                f"{name} is your peer, but has suspended this domain. Talk to its administrator; events wait meanwhile."
            )
        if trouble := _trouble(peer):
            advice = _advice(peer) or "This domain tries again by itself."
            return f"{name} is your peer: both have agreed, but events wait: {trouble} {advice}"
        return f"{name} is your peer: both have agreed, and events can flow. Next: herald replica join ID"
    if theirs == "leaves":
        return f"{name} declined, or has removed this domain. Talk to its administrator, then: herald peer add {peer['url']}"
    own = (await client.about()).get("domain", "NAME")
    problem = peer["hello"]["problem"]
    trouble = f" It could not be told yet, and is told again by itself: {problem}" if problem else ""
    return (
        f"Waiting for {name}'s administrator, who runs: herald peer approve {own}. "
        f"Compare fingerprints: theirs is {peer['fingerprint_shown']}, yours {peer['own_fingerprint_shown']}.{trouble}"
    )


def _line(peer: dict[str, Any]) -> str:
    """A peer on one line."""
    may = "".join(f" {name}" for name in ("push", "host", "gossip") if peer[name]) or " nothing"
    said = {"suspends": "has suspended this domain", "leaves": "has left", None: "not heard of yet"}.get(
        peer["theirs"], ""
    )
    problem = peer.get("problem")
    trouble = f"{problem['kind']} since {problem['since']}" if problem else ""
    parts = [f"{peer['name']:30} {peer['state']:9} may{may}", peer["url"], said, trouble, peer["note"]]
    return "  ".join(part for part in parts if part)


def _heard(peer: dict[str, Any]) -> str:
    """When there was contact last, and in which directions."""
    contact = peer.get("contact") or {}
    parts = [f"its last {what} {at}" for what in ("request", "answer") if (at := contact.get(f"{what}_at"))]
    return " ".join([peer["heard_at"] or "never", *([f"({', '.join(parts)})"] if parts else [])])


def _trouble(peer: dict[str, Any]) -> str:
    """Why nothing arrives at it and since when; empty while all is well."""
    problem = peer.get("problem")
    if problem is None:
        return str((peer["delivery"] or {}).get("detail") or "")
    until = f", until {problem['until']}" if problem["until"] else ""
    return f"{problem['kind']} since {problem['since']}{until}: {problem['detail']}"


def _advice(peer: dict[str, Any]) -> str:
    """What to do about it."""
    return str((peer.get("problem") or {}).get("advice", "")).replace("NAME", peer["name"])


def _link(item: dict[str, Any]) -> str:
    """A shared rendezvous point on one line."""
    about = f"{item['rp']}  {item['link']:8} it lacks {item['backlog']:>8,}  we lack {item['ahead']:>8,}"
    return "  ".join(part for part in (about, item["name"], item["detail"]) if part)


def _described(peer: dict[str, Any]) -> list[str]:
    may = ", ".join(name for name in ("push", "host", "gossip") if peer[name]) or "nothing"
    rates = f"{peer['events_per_s']} events, {peer['bytes_per_s']} bytes, {peer['requests_per_s']} requests per second"
    lines = [
        ("name", peer["name"]),
        ("url", peer["url"]),
        ("state", peer["state"]),
        ("it says", peer["theirs"] or "nothing yet"),
        ("fingerprint", peer["fingerprint_shown"]),
        ("yours", peer["own_fingerprint_shown"]),
        ("number", peer["safety_number"]),
        ("may", may),
        ("rates", rates),
        ("heard", _heard(peer)),
        ("until", f"{peer['lease']['expires_at']} unless it is heard of"),
        ("note", peer["note"]),
        ("trouble", peer["hello"]["problem"] or _trouble(peer)),
        ("to do", _advice(peer)),
    ]
    return [f"{key:11} {value}" for key, value in lines if value]
