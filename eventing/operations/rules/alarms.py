"""Alarms as data: what is wrong at one thing, by one rule. Pure."""

from __future__ import annotations

from dataclasses import dataclass

DETAIL_CHARS_MAX = 500
ABOUT_CHARS_MAX = 255
LINK_CHARS_MAX = 255
WHY_CHARS_MAX = 255
NOTE_CHARS_MAX = 500
LASTING = "lasting"
"""The rule of an alarm about what has ended and can be kept by nobody any more: it is open until it is acknowledged."""

LASTING_MAX = 100
"""Lasting alarms that are open at a time. Those beyond are one alarm, MORE, that counts them; the audit has each."""

MORE = "more"


@dataclass(frozen=True, slots=True)
class Value:
    """A measured number and the limit that the rule sets, both in `unit`."""

    name: str
    value: float
    limit: float
    unit: str


@dataclass(frozen=True, slots=True)
class Stated:
    """An alarm as it is to be told.

    Attributes:
        rule, about: whose it is: at most one is open for a rule and what in particular it is about (may be empty).
        rp: the RP's id; empty for the domain.
        detail: one sentence: what is wrong.
        link: the console's page where more is to be seen.
        since: Unix seconds at which it was first seen broken.
    """

    rule: str
    about: str
    rp: str
    kind: str
    severity: str
    detail: str
    values: tuple[Value, ...]
    link: str
    since: float


@dataclass(frozen=True, slots=True)
class Raised:
    """An alarm begins."""

    alarm: Stated


@dataclass(frozen=True, slots=True)
class Changed:
    """An alarm goes on, with other numbers."""

    alarm: Stated


@dataclass(frozen=True, slots=True)
class Cleared:
    """An alarm ends; `why` in one sentence."""

    rule: str
    about: str
    why: str


Output = Raised | Changed | Cleared
