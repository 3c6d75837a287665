"""`herald policy`: why a rendezvous point admits a bearer, or does not."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping
from typing import Any

import click

from herald.commands.common import Command, Group, Target, domain_options, run
from herald.delegation import OPERATIONS

ANONYMOUS = "anonymous"
INPUT_CHARS_MAX = 64 * 1024  # what the domain takes in one request


@click.group(cls=Group, short_help="Explain policies.")
def command() -> None:
    """Explain what a rendezvous point's policy decides."""


@command.command(cls=Command)
@click.argument("bearer", metavar="TOKEN")
@click.argument("rp")
@click.argument("operation", metavar="OP", type=click.Choice(OPERATIONS))
@domain_options
def explain(target: Target, bearer: str, rp: str, operation: str) -> None:
    """Say which rule of RP's policy decides whether the bearer of TOKEN may do OP, and why.

    TOKEN is a token; - reads it from standard input, so that it stays out of the shell's history. It may also be a JSON
    object of claims, as if its issuer had signed them, or the word anonymous, for somebody without a token.

    \b
    OP is describe, publish, subscribe, history, administer or replicate.

    Everybody may ask about their own token, and who administers RP about all. Without HERALD_TOKEN and --token the
    question is asked with TOKEN itself.

    \b
    herald token create --subject roof | herald policy explain - sensors/roof publish
    herald policy explain '{"iss":"https://id.example.org","sub":"x","age":20}' sensors/roof subscribe
    """
    question = _question(_read_input() if bearer == "-" else bearer.strip())
    if target.token is None:
        target = dataclasses.replace(target, token=question.get("token"))

    async def work() -> None:
        async with target.client() as client:
            answer = await client.rps.explain(rp, operation, **question)
        target.show(answer, lambda answer: _told(answer, operation))

    run(work())


def _read_input() -> str:
    text = sys.stdin.read(INPUT_CHARS_MAX + 1)
    if len(text) > INPUT_CHARS_MAX:
        raise click.UsageError("Standard input is longer than any token.")
    return text.strip()


def _question(text: str) -> dict[str, Any]:
    """The member that the bearer is in; none for somebody without a token."""
    if not text:
        raise click.UsageError(f"There is no token; for somebody without one write {ANONYMOUS}.")
    if text == ANONYMOUS:
        return {}
    if not text.startswith("{"):
        return {"token": text}
    try:
        claims = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"The claims are not JSON: {error}") from error
    return {"claims": claims}


def _told(answer: Mapping[str, Any], operation: str) -> list[str]:
    verdict = f"{operation} is {'allowed' if answer.get('allowed') else 'refused'}"
    lines = [f"{verdict}, decided by {answer.get('decided_by')}", str(answer.get("reason", ""))]
    rules = answer.get("rules")
    for rule in rules if isinstance(rules, list) else []:
        mark = "matches" if rule.get("matches") else "no match"
        lines.append(f"  rule {rule.get('rule')!s:4} {mark:8}  {rule.get('issuer')}: {rule.get('why')}")
    return lines
