"""What a check found: a grade, what is so, and what to do about it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum


class Grade(StrEnum):
    """`ok`: nothing to do. `warn`: it runs, but with less than it could. `fail`: it does not run, or loses something."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """`subject` in a word or two, `says` one sentence; `do` one sentence, empty when the grade is ok."""

    subject: str
    grade: Grade
    says: str
    do: str = ""

    def as_dict(self) -> dict[str, str]:
        """For JSON."""
        return {name: str(value) for name, value in asdict(self).items()}


def ok(subject: str, says: str) -> Finding:
    return Finding(subject, Grade.OK, says)


def warn(subject: str, says: str, do: str) -> Finding:
    return Finding(subject, Grade.WARN, says, do)


def fail(subject: str, says: str, do: str) -> Finding:
    return Finding(subject, Grade.FAIL, says, do)
