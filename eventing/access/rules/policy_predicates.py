"""Predicates of policy rules on single claims. Pure; compiled once, evaluated without copying.

A predicate compares one value, including its type: in JSON true, 1 and "1" are three values, and a list is not its
elements. Only `audience` examines the members of a list. A claim that is missing, or of a type other than the
predicate's, does not satisfy the predicate (except `{"exists": false}`, which only a missing claim satisfies).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from eventing.core.ids import canonical_json

# Longer lists belong into a claim of the issuer, such as a group.
VALUES_MAX = 1000  # bound: values of one `in`; the policy is refused
# Guess: an eighth of a whole token.
TEXT_CHARS_MAX = 1024  # bound: characters of a string to compare with; the policy is refused
CLAIM_CHARS_MAX = 256  # characters of a name or pointer; claim names are short so that tokens are (RFC 7519 section 1)
PATH_PARTS_MAX = 8  # names in a pointer; tokens of known issuers nest 2 or 3 deep
MISSING: Any = object()


@dataclass(frozen=True, slots=True)
class Predicate:
    """One compiled predicate.

    Attributes:
        claim: as written: a name, or a JSON pointer that begins with a slash.
        path: names from the claims inwards; one for a plain name.
        test: which of TESTS.
        value: compiled operand of the test.
        stated: operand as written, for explanations.
        text: canonical JSON, by which predicates are compared: in Python 1 and True are equal, here they differ.
    """

    claim: str
    path: tuple[str, ...]
    test: str
    value: Any = field(compare=False)
    stated: Any = field(compare=False)
    text: bytes = field(repr=False)

    def find(self, claims: Mapping[str, Any]) -> Any:
        """Return the claim's value; MISSING if there is none. Pointers lead through objects only, never into lists."""
        if len(self.path) == 1:
            return claims.get(self.path[0], MISSING)
        found: Any = claims
        for part in self.path:
            if not isinstance(found, Mapping) or part not in found:
                return MISSING
            found = found[part]
        return found

    def holds(self, claims: Mapping[str, Any]) -> bool:
        """Return True if the claims satisfy the predicate."""
        return TESTS[self.test].holds(self.find(claims), self.value)


def compile_predicate(claim: str, predicate: Any) -> Predicate:
    """Compile `{test: value}` on `claim`. Raises ValueError with the fault, as the end of a sentence."""
    shown = claim[:CLAIM_CHARS_MAX]
    if len(claim) > CLAIM_CHARS_MAX:
        raise ValueError(f"claim {shown}... is longer than {CLAIM_CHARS_MAX} characters.")
    if not isinstance(predicate, Mapping) or len(predicate) != 1:
        raise ValueError(f"claim {shown} takes an object with exactly one of {', '.join(TESTS)}.")
    ((test, stated),) = predicate.items()
    if test not in TESTS:
        raise ValueError(f"claim {shown} takes one of {', '.join(TESTS)}; there is no {test[:CLAIM_CHARS_MAX]}.")
    value = TESTS[test].compiled(stated)
    if value is MISSING:
        raise ValueError(f"claim {shown}: {test} takes {TESTS[test].takes}.")
    return Predicate(claim, _path(claim), test, value, stated, canonical_json(stated))


def _path(claim: str) -> tuple[str, ...]:
    """Split a claim's name or pointer (RFC 6901) into names. A dot has no special meaning: names of claims contain dots."""
    if not claim.startswith("/"):
        return (claim,)
    parts = claim[1:].split("/")
    if len(parts) > PATH_PARTS_MAX or not all(parts):
        raise ValueError(f"claim {claim} is a pointer of 1 to {PATH_PARTS_MAX} names, none empty: /realm_access/roles.")
    if "~" in claim.replace("~0", "").replace("~1", ""):
        raise ValueError(f"claim {claim}: in a pointer ~ is written ~0, and a slash in a name ~1.")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


class _Test(NamedTuple):
    """A test: compiler of its operand (MISSING if invalid), condition, and description of the operand."""

    compiled: Callable[[Any], Any]
    holds: Callable[[Any, Any], bool]
    takes: str


def _is_value(value: Any) -> bool:
    return len(value) <= TEXT_CHARS_MAX if isinstance(value, str) else isinstance(value, int)


def _is_number(value: Any) -> bool:
    """Return True for a finite number; booleans are not numbers."""
    return type(value) is int or (type(value) is float and math.isfinite(value))


def _members(values: Any) -> Any:
    """Make the set for `in`. In Python True == 1, here they differ: values other than text are stored with their type."""
    if not isinstance(values, list) or len(values) > VALUES_MAX or not all(map(_is_value, values)):
        return MISSING
    return frozenset(value if isinstance(value, str) else (type(value), value) for value in values)


def _is_member(actual: Any, members: frozenset[Any]) -> bool:
    if isinstance(actual, str):
        return actual in members
    return isinstance(actual, int) and (type(actual), actual) in members


def _interval(value: Any) -> Any:
    """Make (min, max) of a range; None for no bound on that side."""
    if not isinstance(value, Mapping) or not value or set(value) - {"min", "max"}:
        return MISSING
    if not all(map(_is_number, value.values())):
        return MISSING
    low, high = value.get("min"), value.get("max")
    return MISSING if low is not None and high is not None and low > high else (low, high)


def _is_within(actual: Any, interval: tuple[float | None, float | None]) -> bool:
    low, high = interval
    return _is_number(actual) and (low is None or low <= actual) and (high is None or actual <= high)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= TEXT_CHARS_MAX


def _if(accepted: Callable[[Any], bool]) -> Callable[[Any], Any]:
    return lambda value: value if accepted(value) else MISSING


_TEXT = f"of at most {TEXT_CHARS_MAX} characters"
TESTS: dict[str, _Test] = {
    "equals": _Test(
        _if(_is_value),
        lambda actual, value: type(actual) is type(value) and actual == value,
        f"a text {_TEXT}, an integer, true or false",
    ),
    "in": _Test(_members, _is_member, f"a list of at most {VALUES_MAX} texts {_TEXT}, integers, true or false"),
    "prefix": _Test(
        _if(lambda value: isinstance(value, str) and len(value) <= TEXT_CHARS_MAX),
        lambda actual, value: isinstance(actual, str) and actual.startswith(value),
        f"a text {_TEXT}",
    ),
    "exists": _Test(
        _if(lambda value: isinstance(value, bool)),
        lambda actual, value: (actual is not MISSING) is value,
        "true or false",
    ),
    "range": _Test(
        _interval, _is_within, "an object of min, max or both, which are finite numbers with min no more than max"
    ),
    "audience": _Test(
        _if(_is_text),
        lambda actual, value: value in actual if isinstance(actual, list) else bool(actual == value),
        f"a text of 1 to {TEXT_CHARS_MAX} characters",
    ),
}
