"""`herald session`: list the live sessions of a domain, and disconnect them."""

from __future__ import annotations

from typing import Any

import click

from herald.commands.common import Command, CommandGroup, Target, domain_options, run
from herald.commands.listing import ListColumn, ListPrinter, list_options, when
from herald.commands.output import note
from herald.commands.rp_names import RpNames

PAGE = 100


@click.group(cls=CommandGroup, short_help="List live sessions; disconnect them.")
def command() -> None:
    """List the live sessions of a domain, the slowest first, and disconnect them. Requires an administrator's or
    operator's token.
    """


_STATES = {"stalled": "red", "replaying": "yellow"}
_COLUMNS = (
    ListColumn("principal", lambda one: one["principal"]),
    ListColumn("reads", lambda one: one["reads"]),
    ListColumn("state", lambda one: one["state"], lambda one: _STATES.get(one["state"])),
    ListColumn("behind", lambda one: one["lag"], lambda one: _STATES.get(one["state"])),
    ListColumn("waiting-bytes", lambda one: one["waiting_bytes"]),
    ListColumn("kind", lambda one: one["kind"]),
    ListColumn("since", lambda one: when(one["since"])),
    ListColumn("id", lambda one: one["id"]),
    ListColumn("gateway", lambda one: one.get("gateway"), extra=True),
    ListColumn("passed", lambda one: one.get("passed"), extra=True),
    ListColumn("address", lambda one: one.get("address"), extra=True),
    ListColumn("rp-id", lambda one: ", ".join(one["rps"]), extra=True),
)


@command.command(name="list", cls=Command)
@click.option("--principal", help="Only sessions of this identity.")
@click.option("--rp", help="Only sessions that read this rendezvous point, by id or name.")
@click.option(
    "--sort", type=click.Choice(["id", "lag", "since"]), default="lag", help="Default: lag, the slowest first."
)
@list_options(_COLUMNS)
def list_(target: Target, principal: str | None, rp: str | None, sort: str, columns: tuple[ListColumn, ...]) -> None:
    """List the live sessions of all gateways."""

    async def work() -> None:
        cursor, missing = None, 0
        with ListPrinter(target, columns, empty="There are no sessions. Begin one: herald sub RP") as rows:
            async with target.client() as client:
                names = RpNames(client)
                while True:
                    page = await client.operating.sessions(
                        principal=principal, rp=rp, sort=sort, cursor=cursor, limit=PAGE
                    )
                    if not target.json:
                        await names.look_up(item["rps"][0] for item in page["items"] if item["readings"] == 1)
                    for item in page["items"]:
                        rows.add(item, {**item, "reads": _reads(item, names)})
                    missing = max(missing, page["gateways"]["asked"] - page["gateways"]["answered"])
                    cursor = page["next"]
                    if cursor is None:
                        break
        if missing:
            note(f"{missing} gateways did not answer; their sessions are missing from this list.")

    run(work())


@command.command(cls=Command)
@click.argument("session", required=False)
@click.option("--principal", help="All sessions of this identity.")
@click.option("--rp", help="All sessions that read this rendezvous point, by id or name.")
@click.option("--retry/--no-retry", default=False, help="Whether the clients are asked to connect again. Default: no.")
@click.option("--reason", help="Reason, for the audit.")
@domain_options
def disconnect(
    target: Target, session: str | None, principal: str | None, rp: str | None, retry: bool, reason: str | None
) -> None:
    """Disconnect SESSION (its id in the list), all sessions of a principal, or all that read a rendezvous point.

    A disconnected client may connect again: to exclude it, revoke its token (herald token revoke) or change the policy.
    """
    if sum(one is not None for one in (session, principal, rp)) != 1:
        raise click.UsageError("Give one of SESSION, --principal NAME and --rp RP.")

    async def work() -> None:
        async with target.client() as client:
            done = await client.operating.disconnect(session, principal=principal, rp=rp, retry=retry, reason=reason)
        target.show(done, _disconnected)

    run(work())


def _disconnected(done: dict[str, Any]) -> str:
    silent = done["gateways"]["asked"] - done["gateways"]["answered"]
    missing = f"; {silent} gateways did not answer" if silent else ""
    return f"disconnected {done['disconnected']}{missing}"


def _reads(item: dict[str, Any], names: RpNames) -> str:
    return names[item["rps"][0]] if item["readings"] == 1 else f"{item['readings']} rps"
