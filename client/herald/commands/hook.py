"""`herald hook`: webhooks, by which a domain sends events to an endpoint."""

from __future__ import annotations

import asyncio
import base64
import os
from typing import Any, TextIO

import click

from herald.commands.common import Command, CommandGroup, Target, domain_options, run
from herald.commands.hook_listening import HookListener
from herald.commands.listing import ListColumn, ListPrinter, list_options, when
from herald.commands.moments import start_of, start_options
from herald.commands.output import note
from herald.commands.rp_names import RpNames

PAGE = 100
TEST_WITHIN_S = 30.0
EXCERPT_CHARS_SHOWN = 80
LISTEN_LEASE_S = 3600
MODES = ("webhook", "cloudevents-http")


@click.group(cls=CommandGroup, short_help="Webhooks: have events sent to an endpoint.")
def command() -> None:
    """Webhooks: have the events of a rendezvous point sent to an endpoint, and look after it."""


@command.command(cls=Command)
@click.argument("rp")
@click.argument("address")
@click.option("--secret", help="Secret of the signatures: whsec_BASE64. Default: a new one, which is printed once.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["structured", "binary", "batch", "raw"]),
    default="structured",
    show_default=True,
)
@click.option("--unordered", is_flag=True, help="Send several events at once.")
@click.option("--max-attempts", type=click.IntRange(1, 10), help="Attempts after which an event is a dead letter.")
@click.option("--rate", type=click.IntRange(min=1), help="Most requests a minute.")
@click.option("--client-certificate", type=click.File(), help="FILE with a certificate for mutual TLS, as PEM.")
@click.option("--client-key", type=click.File(), help="FILE with the key of this certificate, as PEM.")
@click.option("--warn-url", help="Address that is warned when the endpoint is paused or gone.")
@start_options
@click.option("--lease-s", type=click.IntRange(min=1), help="Seconds to live unless renewed. Default: the domain's.")
@click.option("--replicas", type=click.IntRange(1, 5), help="Domains that hold it: one sends, the others take over.")
@domain_options
def create(
    target: Target,
    rp: str,
    address: str,
    secret: str | None,
    form: str,
    unordered: bool,
    max_attempts: int | None,
    rate: int | None,
    client_certificate: TextIO | None,
    client_key: TextIO | None,
    warn_url: str | None,
    from_: str,
    since: str | None,
    lease_s: int | None,
    replicas: int | None,
) -> None:
    """Have the events of RP (id or name) sent to the endpoint at ADDRESS, an https URL, once it has consented."""
    begin = start_of(from_, since)
    made = secret or new_secret()
    stated = {"client_certificate": client_certificate, "client_key": client_key}
    pem = {name: file.read() for name, file in stated.items() if file is not None}

    async def work() -> None:
        deliver: dict[str, Any] = {"secret": made, "format": form, "ordered": not unordered}
        optional = {"max_attempts": max_attempts, "rate": rate, "warn_url": warn_url, **pem}
        deliver.update({name: value for name, value in optional.items() if value is not None})
        async with target.client() as client:
            found = await client.hooks.create(rp, address, lease_s=lease_s, from_=begin, replicas=replicas, **deliver)
        target.show(found, lambda found: f"created {found['id']}, until {found['lease']['expires_at']}")
        if secret is None:
            note(f"secret of the signatures, shown only now: {made}")

    run(work())


@command.command(cls=Command)
@click.argument("subscription")
@click.argument("address")
@click.option("--secret", help="Secret of the signatures: whsec_BASE64. Default: the present one, or none.")
@domain_options
def endpoint(target: Target, subscription: str, address: str, secret: str | None) -> None:
    """State the endpoint of SUBSCRIPTION at this domain: another address, or that of a webhook that this domain is to take over."""

    async def work() -> None:
        async with target.client() as client:
            found = await client.hooks.state(subscription, address, **({"secret": secret} if secret else {}))
        target.show(found, lambda found: f"{found['id']} is sent to {found['deliver']['url']} once it has consented")

    run(work())


_COLUMNS = (
    ListColumn("url", lambda one: one["deliver"]["url"]),
    ListColumn("rp", lambda one: one["name"]),
    ListColumn("behind", lambda one: one["lag"]),
    ListColumn("lost", lambda one: one.get("lost") or 0, lambda one: "red" if one.get("lost") else None),
    ListColumn("ends", lambda one: when(one["lease"]["expires_at"])),
    ListColumn("id", lambda one: one["id"]),
    ListColumn("mode", lambda one: one["deliver"]["mode"], extra=True),
    ListColumn("owner", lambda one: one["owner"], extra=True),
    ListColumn("rp-id", lambda one: one["rp"], extra=True),
)


@command.command(name="list", cls=Command)
@click.option("--rp", help="Only those at this rendezvous point, by id or name.")
@list_options(_COLUMNS)
def list_(target: Target, rp: str | None, columns: tuple[ListColumn, ...]) -> None:
    """List webhooks: all for administrators, operators and viewers, else your own."""

    async def work() -> None:
        cursor = None
        with ListPrinter(target, columns, empty="There are no webhooks. Create one: herald hook create RP URL") as rows:
            async with target.client() as client:
                names = RpNames(client)
                while True:
                    page = await client.operating.subscriptions(rp=rp, owner=None, sort="id", cursor=cursor, limit=PAGE)
                    found = [item for item in page["items"] if item["deliver"]["mode"] in MODES]
                    if not target.json:
                        await names.look_up(item["rp"] for item in found)
                    for item in found:
                        rows.add(item, {**item, "name": names[item["rp"]]})
                    cursor = page["next"]
                    if cursor is None:
                        break

    run(work())


@command.command(name="show", cls=Command)
@click.argument("subscription")
@click.option("--attempts", type=click.IntRange(0, 50), default=10, show_default=True, help="Attempts to list.")
@domain_options
def show_(target: Target, subscription: str, attempts: int) -> None:
    """Describe a webhook's endpoint, and list its last attempts."""

    async def work() -> None:
        async with target.client() as client:
            found = await client.hooks.endpoint(subscription)
            target.show(found, _described)
            for one in (await client.hooks.attempts(subscription))[:attempts]:
                target.show(one, _attempt)

    run(work())


@command.command(cls=Command)
@click.argument("subscription")
@domain_options
def test(target: Target, subscription: str) -> None:
    """Send a test event, and show what the endpoint answers."""

    async def work() -> None:
        async with target.client() as client:
            test_id = await client.hooks.test(subscription)
            try:
                async with asyncio.timeout(TEST_WITHIN_S):
                    while True:
                        attempts = await client.hooks.attempts(subscription)
                        found = next((one for one in attempts if one["message"] == test_id), None)
                        if found is not None:
                            break
                        await asyncio.sleep(0.3)
            except TimeoutError:
                note(
                    f"The test event {test_id} was not sent within {TEST_WITHIN_S:g} s; see: herald hook show {subscription}"
                )
                return
        target.show(found, _attempt)

    run(work())


@command.command(cls=Command)
@click.argument("subscription")
@click.argument("dead_letters", nargs=-1, type=click.IntRange(min=1))
@click.option(
    "--after", metavar="CURSOR", help="Send all events after this cursor again, delivered or not; with --until."
)
@click.option("--until", metavar="CURSOR", help="The last of these events.")
@domain_options
def replay(
    target: Target, subscription: str, dead_letters: tuple[int, ...], after: str | None, until: str | None
) -> None:
    """Send events again: the DEAD_LETTERS with these ids, without any all of them, or those between two cursors."""
    if (after is None) is not (until is None) or (after is not None and dead_letters):
        raise click.UsageError("State both --after and --until, and no dead letters with them.")

    async def work() -> None:
        async with target.client() as client:
            span = None if after is None or until is None else (after, until)
            count = await client.hooks.replay(subscription, dead_letters=dead_letters or None, span=span)
        target.show({"queued": count}, f"queued to be sent again: {count}")

    run(work())


@command.command(cls=Command)
@click.argument("subscription")
@domain_options
def pause(target: Target, subscription: str) -> None:
    """Stop deliveries; events wait in the history."""

    async def work() -> None:
        async with target.client() as client:
            target.show(await client.hooks.pause(subscription), _described)

    run(work())


@command.command(cls=Command)
@click.argument("subscription")
@domain_options
def resume(target: Target, subscription: str) -> None:
    """Try a paused or failing endpoint at once."""

    async def work() -> None:
        async with target.client() as client:
            target.show(await client.hooks.resume(subscription), _described)

    run(work())


@command.command(cls=Command)
@click.argument("subscription")
@domain_options
def page(target: Target, subscription: str) -> None:
    """Print a link to the endpoint's page, for a person without an account. It works once; the page lasts an hour."""

    async def work() -> None:
        async with target.client() as client:
            made = await client.hooks.page(subscription)
        target.show(made, lambda made: str(made["url"]))
        note(f"works once, until {made['expires_at']}; whoever opens it first looks after this endpoint as you")

    run(work())


@command.command(cls=Command)
@click.argument("subscription")
@click.option("--secret", help="The new secret. Default: a random one, which is printed once.")
@click.option("--keep-s", type=click.IntRange(0), help="Seconds for which the present one signs too. Default: a day.")
@domain_options
def rotate(target: Target, subscription: str, secret: str | None, keep_s: int | None) -> None:
    """Replace the secret of the signatures."""
    made = secret or new_secret()

    async def work() -> None:
        async with target.client() as client:
            target.show(await client.hooks.secret_replace(subscription, made, keep_s=keep_s), _described)
        if secret is None:
            note(f"secret of the signatures, shown only now: {made}")

    run(work())


@command.command(cls=Command)
@click.argument("rp")
@click.option("--port", type=click.IntRange(1, 65_535), help="Port on this machine. Default: a free one.")
@click.option("--count", type=click.IntRange(min=1), help="Stop after this many requests.")
@domain_options
def listen(target: Target, rp: str, port: int | None, count: int | None) -> None:
    """Show the requests that an endpoint of RP would get, received on this machine, for a domain that may call it
    (HERALD_PUSH_PRIVATE)."""
    secret = new_secret()

    async def work() -> None:
        listening = HookListener(secret, port or 0, lambda found: target.show(found, _request))
        async with listening as listener, target.client() as client:
            made = await client.hooks.create(rp, listener.url, lease_s=LISTEN_LEASE_S, secret=secret)
            note(f"{listener.url} receives the events of {rp}; Ctrl-C ends it.")
            try:
                await listener.received(count)
            finally:
                await client.subscriptions.delete(str(made["id"]))

    run(work())


def new_secret() -> str:
    """Make a random secret of Standard Webhooks."""
    return "whsec_" + base64.b64encode(os.urandom(32)).decode()


def _described(found: dict[str, Any]) -> list[str]:
    state = f"{found['state']} since {found['state_at'][:19]}Z" + (f": {found['reason']}" if found["reason"] else "")
    lines = [
        ("url", found["url"]),
        ("state", state),
        ("lag", f"{found['lag']:,} behind, {found['dead_letters']:,} dead letters"),
        ("key", found["public_key"]),
    ]
    if found["next_at"]:
        lines.insert(2, ("next", f"{found['next_at'][:19]}Z, after {found['failures']} failures"))
    return [f"{name:8} {value}" for name, value in lines]


def _attempt(one: dict[str, Any]) -> str:
    body = base64.b64decode(one["excerpt"]).decode(errors="replace")[:EXCERPT_CHARS_SHOWN]
    span = f"{one['first']}" if one["first"] == one["last"] else f"{one['first']}-{one['last']}"
    what = span if one["what"] == "event" else one["what"]
    return f"{one['at'][:23]}Z  {what:>12}  {one['verdict']:9}  {one['reason']:18} {one['took_ms']:>6} ms  {body}"


def _request(found: dict[str, Any]) -> list[str]:
    signed = "signature valid" if found["valid"] else "SIGNATURE WRONG"
    return [f"{found['method']} {found['path']}  {found['id']}  {signed}", f"  {found['body']}"]
