"""`herald policy`: explanation of a policy's decision about a bearer."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping
from typing import Any

import click

from herald.commands.common import Command, CommandGroup, Target, domain_options, run
from herald.commands.policy_options import policy_option
from herald.delegation import OPERATIONS

ANONYMOUS = "anonymous"
INPUT_CHARS_MAX = 64 * 1024  # most that the domain accepts in one request


@click.group(cls=CommandGroup, short_help="Explain policies.")
def command() -> None:
    """Explain the decisions of a rendezvous point's policy."""


@command.command(cls=Command)
@click.argument("bearer", metavar="TOKEN")
@click.argument("rp")
@click.argument("operation", metavar="OP", type=click.Choice(OPERATIONS))
@policy_option("Try this policy instead of RP's own: a JSON file; - reads standard input.")
@domain_options
def explain(target: Target, bearer: str, rp: str, operation: str, policy: list[Any] | None) -> None:
    """Show which rule of RP's policy decides whether the bearer of TOKEN may do OP, and why.

    TOKEN is a token; - reads it from standard input, so that it stays out of the shell's history. It may also be a JSON
    object of claims, as if its issuer had signed them, or the word anonymous, for somebody without a token.

    \b
    OP is describe, publish, subscribe, history, administer or replicate.

    Explaining your own token needs no further right; explaining others needs `administer` at RP. Without HERALD_TOKEN
    and --token the request is made with TOKEN itself.

    \b
    herald token create --subject roof | herald policy explain - sensors/roof publish
    herald policy explain '{"iss":"https://id.example.org","sub":"x","age":20}' sensors/roof subscribe
    herald policy explain anonymous sensors/roof subscribe --policy draft.json
    """
    question = _question(_read_input() if bearer == "-" else bearer.strip())
    if target.token is None:
        target = dataclasses.replace(target, token=question.get("token"))

    async def work() -> None:
        async with target.client() as client:
            answer = await client.rps.explain(rp, operation, policy=policy, **question)
        target.show(answer, lambda answer: _told(answer, operation))

    run(work())


def _read_input() -> str:
    text = sys.stdin.read(INPUT_CHARS_MAX + 1)
    if len(text) > INPUT_CHARS_MAX:
        raise click.UsageError("Standard input is longer than any token.")
    return text.strip()


def _question(text: str) -> dict[str, Any]:
    """Return the member with the bearer; none for an anonymous one."""
    if not text:
        raise click.UsageError(f"There is no token. For a bearer without a token, write {ANONYMOUS}.")
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
