"""`herald token biscuit`, `delegate` and `inspect`: a token for somebody else, narrowed here and now."""

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
    """click's callback for a list of operations."""
    if value is None:
        return None
    stated = [name.strip() for name in value.split(",") if name.strip()]
    unknown = [name for name in stated if name not in OPERATIONS]
    if unknown or not stated:
        raise click.BadParameter(f"use some of {', '.join(OPERATIONS)}, separated by commas")
    return stated


def _duration(ctx: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    found = _DURATION.fullmatch(value)
    if found is None or int(found[1]) < 1:
        raise click.BadParameter("say a time such as 90s, 10m, 1h or 7d")
    return int(found[1]) * _UNITS_S[found[2]]


@click.command(cls=Command)
@domain_options
def biscuit(target: Target) -> None:
    """Make your token one that can be delegated. Asks the domain, once:

    export HERALD_TOKEN=$(herald token biscuit)
    """
    run(_ask(target))


@click.command(cls=Command)
@click.argument("argument", metavar="[TOKEN]", required=False)
@click.option(
    "--rp", "rps", multiple=True, metavar="RP", help="Only this: an id, a name, or /a/b/* for all below. Repeat."
)
@click.option("--ops", callback=operations, metavar="OP,...", help=f"Only these operations: {', '.join(OPERATIONS)}.")
@click.option("--for", "for_s", callback=_duration, metavar="TIME", help="Only so long: 90s, 10m, 1h, 7d.")
@domain_options
def delegate(
    target: Target, argument: str | None, rps: tuple[str, ...], ops: list[str] | None, for_s: int | None
) -> None:
    """Make a token for somebody else that can do less than yours. No server is asked.

    TOKEN is a Biscuit (herald token biscuit); - reads it from the input. Default: --token or HERALD_TOKEN; the latter is
    not shown to other users of this machine.

    \b
      herald token delegate --rp weather --ops subscribe,history,describe --for 1h
    """
    narrowed = delegation.delegate(_shown(target, argument), rps=rps, operations=ops or (), for_s=for_s)
    target.show({"token": narrowed, **_summary(delegation.inspect(narrowed))}, narrowed)


@click.command(cls=Command)
@click.argument("argument", metavar="[TOKEN]", required=False)
@domain_options
def inspect(target: Target, argument: str | None) -> None:
    """Show what a token says. No server is asked, so this says nothing of whether it is accepted.

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
        raise click.UsageError("Show the token: as the argument, with --token, or in HERALD_TOKEN.")
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
        lines.append(f"expires     {_moment(found.expires_at)} ({f'in {left:.0f} s' if left > 0 else 'over'})")
    lines.append(f"key         {found.key_id}")
    for name in sorted(set(claims) - {"iss", "sub", "aud", "exp", "admin"}):
        lines.append(f"{name:<11} {dump(claims[name])}")
    for number, block in enumerate(found.checks, 1):
        lines += [f"block {number:<5} {check.rstrip(';')}" for check in block or ("(nothing)",)]
    if found.chained:
        lines.append("Every block is signed by the one before; whether the key is the domain's, the domain knows.")
    else:
        lines.append("The signature was not looked at: the domain's key is not in the token.")
    return lines


def _moment(at: float) -> str:
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError, OSError):
        return "after the year 9999"
