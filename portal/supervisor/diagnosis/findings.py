"""Finding of a check: a grade, the state, and the remedy."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum


class Grade(StrEnum):
    """`ok`: no action. `warn`: works with restrictions. `fail`: does not work, or loses data."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class DiagnosisFinding:
    """A finding: `subject` in a word or two, `says` one sentence, `do` one sentence (empty when the grade is ok)."""

    subject: str
    grade: Grade
    says: str
    do: str = ""

    def as_dict(self) -> dict[str, str]:
        """For JSON."""
        return {name: str(value) for name, value in asdict(self).items()}


def ok(subject: str, says: str) -> DiagnosisFinding:
    return DiagnosisFinding(subject, Grade.OK, says)


def warn(subject: str, says: str, do: str) -> DiagnosisFinding:
    return DiagnosisFinding(subject, Grade.WARN, says, do)


def fail(subject: str, says: str, do: str) -> DiagnosisFinding:
    return DiagnosisFinding(subject, Grade.FAIL, says, do)
