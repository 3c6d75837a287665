"""Audiences: who must be reading an RP while events are published there. Pure; compiled with the descriptor.

    [{"label": "auditors", "at_least": 1, "claims": {"role": {"equals": "auditor"}}, "publishing": "refuse"}]

| member | what it says |
|---|---|
| `label` | what people call it; each once |
| `at_least` | how many readings there must be |
| `claims` | predicates as in policies (access/rules/policy_predicates.py); absent: every reading counts |
| `issuer` | whose claims they are, as in policies; absent: `domain` with claims, else `anyone` |
| `publishing` | while it is broken: `refuse` publishes, or `flag` them: an alarm is raised, and events are taken |

A reading is a connection that follows the RP in this domain. Durable subscriptions whose owner is away do not count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eventing.access.rules.policy import Policy, compile_policy
from eventing.core.errors import AudienceMissing, InvalidRequest
from eventing.core.principals import Principal

AUDIENCES_MAX = 8  # of an RP: each is counted at every join of a reader
LABEL_CHARS_MAX = 64
LINE_PATTERN = r"^[^\x00-\x1f\x7f]+$"  # text on one line
AT_LEAST_MAX = 1000  # guess: more is no audience to be named but a crowd
REFUSE, FLAG = "refuse", "flag"
_MEMBERS = {"label", "at_least", "claims", "issuer", "publishing"}


@dataclass(frozen=True, slots=True)
class Need:
    """One audience, compiled. `who`: a policy of one rule; who may subscribe by it counts."""

    label: str
    at_least: int
    refuses: bool
    who: Policy

    def counts(self, principal: Principal) -> bool:
        """Whether a reading of `principal` is of this audience."""
        return self.who.allows(principal, "subscribe")


@dataclass(frozen=True, slots=True)
class Missing:
    """An audience that is broken, and how many there are."""

    label: str
    at_least: int
    present: int


def parse_audience(document: Any) -> list[dict[str, Any]]:
    """The document in its normal form, checked. Raises InvalidRequest naming the audience that is wrong."""
    if not isinstance(document, list) or len(document) > AUDIENCES_MAX:
        raise InvalidRequest(f"audience is a list of at most {AUDIENCES_MAX}.")
    made = [_parsed(number, one) for number, one in enumerate(document, 1)]
    labels = [one["label"] for one in made]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise InvalidRequest(f"audience has the label {twice[0]} twice; a label stands for one audience.")
    return made


def compile_audience(document: Sequence[Mapping[str, Any]]) -> tuple[Need, ...]:
    """What `parse_audience` made, compiled."""
    return tuple(
        Need(one["label"], one["at_least"], one["publishing"] == REFUSE, compile_policy(_policy(one)))
        for one in document
    )


def audience_missing(rp: str, missing: Sequence[Missing]) -> AudienceMissing:
    """The refusal of a publish: says which audience lacks how many."""
    one = missing[0]
    readers = "reader" if one.at_least == 1 else "readers"
    return AudienceMissing(
        f"Events are taken here only while the audience {one.label} has at least {one.at_least} {readers}, and it has "
        f"{one.present}. Try again once it reads.",
        retry_after_s=2,
        rp=rp,
        missing=[{"label": each.label, "at_least": each.at_least, "present": each.present} for each in missing],
    )


def is_line(text: str, chars_max: int) -> bool:
    """Whether `text` is 1 to so many characters without control characters."""
    return len(text) <= chars_max and re.fullmatch(LINE_PATTERN.rstrip("$"), text) is not None


def _parsed(number: int, one: Any) -> dict[str, Any]:
    where = f"audience {number}"
    if not isinstance(one, Mapping) or set(one) - _MEMBERS:
        raise InvalidRequest(f"{where}: an audience has the members {', '.join(sorted(_MEMBERS))} only.")
    label, at_least, publishing = one.get("label"), one.get("at_least"), one.get("publishing", REFUSE)
    if not isinstance(label, str) or not is_line(label, LABEL_CHARS_MAX):
        raise InvalidRequest(f"{where}: label is a text of 1 to {LABEL_CHARS_MAX} characters on one line.")
    if isinstance(at_least, float) and at_least.is_integer():
        at_least = int(at_least)
    if type(at_least) is not int or not 1 <= at_least <= AT_LEAST_MAX:
        raise InvalidRequest(f"{where}: at_least is an integer from 1 to {AT_LEAST_MAX}.")
    if publishing not in (REFUSE, FLAG):
        raise InvalidRequest(f"{where}: publishing is {REFUSE} or {FLAG}.")
    made = {"label": label, "at_least": at_least, "publishing": publishing}
    made |= {name: one[name] for name in ("issuer", "claims") if one.get(name) is not None}
    try:
        compile_policy(_policy(made))
    except InvalidRequest as error:
        raise InvalidRequest(error.detail.replace("policy rule 1", where)) from None
    return made


def _policy(one: Mapping[str, Any]) -> list[dict[str, Any]]:
    issuer = one.get("issuer", "domain" if one.get("claims") else "anyone")
    return [{"issuer": issuer, "claims": one.get("claims", {}), "allow": ["subscribe"]}]
