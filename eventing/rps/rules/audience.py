"""Audiences: readers that must be connected to an RP while events are published there. Pure; compiled with the
descriptor.

    [{"label": "auditors", "at_least": 1, "claims": {"role": {"equals": "auditor"}}, "publishing": "refuse"}]

| member | meaning |
|---|---|
| `label` | name for people; each once |
| `at_least` | required number of readings |
| `claims` | predicates as in policies (access/rules/policy_predicates.py); absent: every reading counts |
| `issuer` | issuer of the claims, as in policies; absent: `domain` with claims, else `anyone` |
| `publishing` | while the audience is incomplete: `refuse` publishes, or `flag` them: an alarm is raised, and events are accepted |

A reading is a connection that follows the RP in this domain. Durable subscriptions whose owner is not connected do not
count.
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
AT_LEAST_MAX = 1000  # guess: more is a crowd, not an audience
REFUSE, FLAG = "refuse", "flag"
_MEMBERS = {"label", "at_least", "claims", "issuer", "publishing"}


@dataclass(frozen=True, slots=True)
class Need:
    """One compiled audience. `who`: a policy of one rule; principals that it allows to subscribe count."""

    label: str
    at_least: int
    refuses: bool
    who: Policy

    def counts(self, principal: Principal) -> bool:
        """Return True if a reading of `principal` belongs to this audience."""
        return self.who.allows(principal, "subscribe")


@dataclass(frozen=True, slots=True)
class MissingAudience:
    """An incomplete audience, and its present number of readings."""

    label: str
    at_least: int
    present: int


def parse_audience(document: Any) -> list[dict[str, Any]]:
    """Check the document and return its normal form. Raises InvalidRequest naming the invalid audience."""
    if not isinstance(document, list) or len(document) > AUDIENCES_MAX:
        raise InvalidRequest(f"audience is a list of at most {AUDIENCES_MAX}.")
    made = [_parsed(number, one) for number, one in enumerate(document, 1)]
    labels = [one["label"] for one in made]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise InvalidRequest(f"audience has the label {twice[0]} twice; each label must be unique.")
    return made


def compile_audience(document: Sequence[Mapping[str, Any]]) -> tuple[Need, ...]:
    """Compile the result of `parse_audience`."""
    return tuple(
        Need(one["label"], one["at_least"], one["publishing"] == REFUSE, compile_policy(_policy(one)))
        for one in document
    )


def audience_missing(rp: str, missing: Sequence[MissingAudience]) -> AudienceMissing:
    """Make the refusal of a publish, which names the incomplete audience and the missing number."""
    one = missing[0]
    readers = "reader" if one.at_least == 1 else "readers"
    return AudienceMissing(
        f"Events are accepted here only while the audience {one.label} has at least {one.at_least} {readers}, and it has {one.present}. Try again when they are connected.",
        retry_after_s=2,
        rp=rp,
        missing=[{"label": each.label, "at_least": each.at_least, "present": each.present} for each in missing],
    )


def is_line(text: str, chars_max: int) -> bool:
    """Return True if `text` has 1 to `chars_max` characters and no control characters."""
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
