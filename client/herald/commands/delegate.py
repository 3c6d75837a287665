"""`herald token biscuit`, `delegate` and `inspect`: make and inspect narrowed tokens locally."""

from __future__ import annotations

import re
import sys
import time
from datetime import UTC, datetime
from typing import Any

import click

from herald import delegation
from herald.commands.common import Command, Target, domain_options, run
from herald.commands.output import dump
from herald.delegation import OPERATIONS

_DURATION = re.compile(r"([0-9]{1,9})([smhd]?)", re.ASCII)
_UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def operations(ctx: click.Context, parameter: click.Parameter, value: str | None) -> list[str] | None:
    """Parse a list of operations; a callback of click."""
    if value is None:
        return None
    stated = [name.strip() for name in value.split(",") if name.strip()]
    unknown = [name for name in stated if name not in OPERATIONS]
    if unknown or not stated:
        raise click.BadParameter(f"use one or several of {', '.join(OPERATIONS)}, separated by commas")
    return stated


def _duration(ctx: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    found = _DURATION.fullmatch(value)
    if found is None or int(found[1]) < 1:
        raise click.BadParameter("use a time such as 90s, 10m, 1h or 7d")
    return int(found[1]) * _UNITS_S[found[2]]


@click.command(cls=Command)
@domain_options
def biscuit(target: Target) -> None:
    """Exchange your token for one that can be delegated, by one request to the domain:

    export HERALD_TOKEN=$(herald token biscuit)
    """
    run(_ask(target))


@click.command(cls=Command)
@click.argument("argument", metavar="[TOKEN]", required=False)
@click.option(
    "--rp",
    "rps",
    multiple=True,
    metavar="RP",
    help="Only this rendezvous point: an id, a name, or /a/b/* for all below. May be repeated.",
)
@click.option("--ops", callback=operations, metavar="OP,...", help=f"Only these operations: {', '.join(OPERATIONS)}.")
@click.option("--for", "for_s", callback=_duration, metavar="TIME", help="Lifetime: 90s, 10m, 1h, 7d.")
@domain_options
def delegate(
    target: Target, argument: str | None, rps: tuple[str, ...], ops: list[str] | None, for_s: int | None
) -> None:
    """Make a narrower token from yours, for somebody else. Needs no server.

    TOKEN is a Biscuit (herald token biscuit); - reads it from standard input. Default: --token or HERALD_TOKEN; other
    users of this machine cannot see the latter.

    \b
      herald token delegate --rp weather --ops subscribe,history,describe --for 1h
    """
    narrowed = delegation.delegate(_shown(target, argument), rps=rps, operations=ops or (), for_s=for_s)
    target.show({"token": narrowed, **_summary(delegation.inspect(narrowed))}, narrowed)


@click.command(cls=Command)
@click.argument("argument", metavar="[TOKEN]", required=False)
@domain_options
def inspect(target: Target, argument: str | None) -> None:
    """Show the content of a token. Needs no server, so this does not show whether the token is accepted.

    TOKEN as in delegate.
    """
    found = delegation.inspect(_shown(target, argument))
    target.show(_summary(found), lambda _: _lines(found))


async def _ask(target: Target) -> None:
    async with target.client() as client:
        issued = await client.create_biscuit()
    target.show(issued, str(issued.get("token", "")))


def _shown(target: Target, token: str | None) -> str:
    if token == "-":  # noqa: S105 - the usual name of the input
        token = sys.stdin.read(2 * delegation.TOKEN_CHARS_MAX).strip()
    token = token or target.token
    if not token:
        raise click.UsageError("Give the token: as the argument, with --token, or in HERALD_TOKEN.")
    return token


def _summary(found: delegation.Inspected) -> dict[str, Any]:
    return {**found.document(), "expires_at": None if found.expires_at is None else _moment(found.expires_at)}


def _lines(found: delegation.Inspected) -> list[str]:
    claims = found.claims
    who = str(claims.get("sub", "nobody"))
    lines = [
        f"{'Biscuit' if found.kind == 'biscuit' else 'JWT'} of {claims.get('iss', 'nobody')!s} for {who}"
        + (", an administrator" if claims.get("admin") is True else "")
    ]
    if found.expires_at is not None:
        left = found.expires_at - time.time()
        lines.append(f"expires     {_moment(found.expires_at)} ({f'in {left:.0f} s' if left > 0 else 'expired'})")
    lines.append(f"key         {found.key_id}")
    for name in sorted(set(claims) - {"iss", "sub", "aud", "exp", "admin"}):
        lines.append(f"{name:<11} {dump(claims[name])}")
    for number, block in enumerate(found.checks, 1):
        lines += [f"block {number:<5} {check.rstrip(';')}" for check in block or ("(nothing)",)]
    if found.chained:
        lines.append("Every block is signed by the one before; only the domain can verify that the key is its own.")
    else:
        lines.append("The signature was not verified: the token does not contain the domain's key.")
    return lines


def _moment(at: float) -> str:
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError, OSError):
        return "after the year 9999"
