"""Policies on the command line: --policy FILE, --allow ISSUER=OPERATION,..., and rules as lines for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from herald.commands.output import dump
from herald.delegation import OPERATIONS

F = TypeVar("F", bound=Callable[..., Any])
STDIN = "-"
POLICY_CHARS_MAX = 1024 * 1024  # bound: characters of a policy that is read; more than a domain accepts
DOMAIN, ANYONE = "domain", "anyone"
DEFAULT_RULE = {"issuer": DOMAIN, "allow": ["describe", "publish", "subscribe", "history"]}
Rule = Mapping[str, Any]


def policy_options(function: F) -> F:
    """Add --policy and --allow; the function gets `policy`, the rules of the file or None, and `allow`, rules to add."""
    function = click.option(
        "--allow",
        multiple=True,
        callback=_allowed,
        metavar="ISSUER=OP,...",
        help="Allow operations to the bearers of an issuer: domain, anyone, peer:NAME or https://... May be repeated.",
    )(function)
    return policy_option("JSON file with the policy, a list of rules; - reads standard input.")(function)


def policy_option(help_text: str) -> Callable[[F], F]:
    """Add --policy alone; the function gets `policy`, the rules of the file or None."""
    return click.option(
        "--policy",
        type=click.Path(exists=True, dir_okay=False, allow_dash=True),
        callback=_read,
        metavar="FILE",
        help=help_text,
    )


def _read(ctx: click.Context, parameter: click.Parameter, path: str | None) -> list[Any] | None:
    if path is None:
        return None
    if path == STDIN:
        text = sys.stdin.read(POLICY_CHARS_MAX + 1)
    else:
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            text = file.read(POLICY_CHARS_MAX + 1)
    shown = "Standard input" if path == STDIN else path
    if len(text) > POLICY_CHARS_MAX:
        raise click.UsageError(f"{shown} is longer than any policy.")
    try:
        rules = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{shown} is not JSON: {error}") from error
    if not isinstance(rules, list):
        raise click.UsageError(f"{shown} is not a policy. A policy is a JSON list of rules.")
    return rules


def _allowed(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> list[Rule]:
    return [_rule(text) for text in value]


def _rule(text: str) -> Rule:
    issuer, equals, stated = text.rpartition("=")
    operations = [one.strip() for one in stated.split(",") if one.strip()]
    if not equals or not issuer:
        raise click.BadParameter("write it as ISSUER=OPERATION,... such as peer:b.example=publish,subscribe,replicate")
    if issuer not in (DOMAIN, ANYONE) and not issuer.startswith(("peer:", "https://")):
        raise click.BadParameter(f"{issuer!r} is no issuer. Issuers: domain, anyone, peer:NAME, https://...")
    for one in operations:
        if one not in OPERATIONS:
            raise click.BadParameter(f"{one!r} is no operation. Operations: {', '.join(OPERATIONS)}.")
    return {"issuer": issuer, "allow": list(dict.fromkeys(operations))}


def policy_with(rules: Sequence[Rule], allow: Sequence[Rule]) -> list[Rule]:
    """Return the policy in which the rules of `allow` decide for all bearers of their issuers.

    A rule takes the place of the present one for all bearers of its issuer. A new one follows the issuer's rules with
    claims, which are exceptions to it; it stands before those for anyone, which would decide instead: the first rule
    that matches decides.
    """
    found = list(rules)
    for rule in allow:
        same = [at for at, one in enumerate(found) if one.get("issuer") == rule["issuer"] and not one.get("claims")]
        if same:
            found[same[0]] = rule
            continue
        anyone = [at for at, one in enumerate(found) if one.get("issuer") == ANYONE and not one.get("claims")]
        found.insert(anyone[0] if anyone else len(found), rule)
    return found


def rule_lines(rules: object) -> list[str]:
    """Return a policy as lines for people, in the order in which the rules are asked."""
    if not isinstance(rules, list) or not rules:
        return ["nobody but its creator and administrators"]
    lines = []
    for rule in rules:
        if not isinstance(rule, Mapping):
            lines.append(dump(rule))
            continue
        more = {name: value for name, value in rule.items() if name not in ("issuer", "allow") and value}
        allowed = ", ".join(map(str, rule.get("allow") or [])) or "nothing"
        lines.append(f"{rule.get('issuer')}: {allowed}" + (f"  if {dump(more)}" if more else ""))
    return lines
