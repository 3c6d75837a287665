"""Alarms as data: one broken rule at one object. Pure."""

from __future__ import annotations

from dataclasses import dataclass

DETAIL_CHARS_MAX = 500
ABOUT_CHARS_MAX = 255
LINK_CHARS_MAX = 255
WHY_CHARS_MAX = 255
NOTE_CHARS_MAX = 500
MUTE_S_MIN = 60
MUTE_S_MAX = 30 * 86_400  # bound: seconds for which an alarm is muted; the request is refused
LASTING = "lasting"
"""The rule of an alarm about an object that has ended, so that nothing can repair it: the alarm is open until it is
acknowledged.
"""

PLACEMENT = "placement"
"""Rule and kind of the alarm that a wanted placement cannot be reached: the planner raises and clears it, no watch rule."""

HOMES = "homes"
"""Kind of the alarm that an RP was handed over twice; it lasts until it is acknowledged."""

LASTING_MAX = 100  # bound: open lasting alarms; one more alarm counts the others; the audit lists each
"""Open lasting alarms. Those beyond are one alarm, MORE, that counts them; the audit has each."""

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
    """An alarm as it is to be reported.

    Attributes:
        rule, about: the rule, and its object (may be empty); at most one alarm is open for both.
        rp: the RP's id; empty for the domain.
        detail: one sentence: what is wrong.
        link: the console's page with more information.
        since: Unix seconds at which the broken rule was first seen.
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
    """The begin of an alarm."""

    alarm: Stated


@dataclass(frozen=True, slots=True)
class Changed:
    """Changed values of an alarm."""

    alarm: Stated


@dataclass(frozen=True, slots=True)
class Cleared:
    """The end of an alarm; `why` in one sentence."""

    rule: str
    about: str
    why: str


Output = Raised | Changed | Cleared
