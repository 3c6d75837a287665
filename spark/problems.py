"""Failures of a job as one sentence that states what to do."""

from __future__ import annotations

import errno
import re
import signal
from contextlib import suppress

_FULL = re.compile(r"No space left on device|Disk quota exceeded|not enough space|ENOSPC", re.IGNORECASE)
_OUT_OF_MEMORY = (
    "The job ran out of memory: give it more (--memory 4g) or a shorter period; the earlier report is still in place."
)
_MEMORY = re.compile(r"OutOfMemoryError|Unable to acquire \d+ bytes of memory|SparkOutOfMemory")
_DENIED = re.compile(r"Permission denied|AccessControlException|AccessDenied")
_MASTER = re.compile(r"All masters are unresponsive|Could not parse Master URL|Master must either|Invalid master URL")
_CAUSE_CHARACTERS_MAX = 300
_SPARK_OUT_OF_MEMORY = 52
"""Exit status. Source: SparkExitCode.OOM."""


class JobProblem(Exception):
    """A job cannot continue; the text is one sentence for its operator."""


class SparkFailure(Exception):
    """An error in the middle of a job, with the texts of its causes: Java, which may end any moment, is asked for them once."""


def sentence(error: BaseException, output: str) -> str:
    """Return `error` as one sentence for operators.

    Args:
        error: what a job raised: its own, the system's or Spark's.
        output: where the job writes.
    """
    if isinstance(error, JobProblem):
        return str(error)
    text = " ".join(chain(error))
    if _FULL.search(text) or (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)):
        return f"The disk is full: free space for {output} and for Spark's temporary folder (--work); the earlier report is still in place."
    if _MEMORY.search(text):
        return _OUT_OF_MEMORY
    if _MASTER.search(text):
        return "The Spark master cannot be reached. Check --master, and that the master runs."
    if _DENIED.search(text):
        return f"Permission to read or write a file or folder is missing: {_short(text)}"
    return f"The job failed: {_short(text)}"


def java_death(status: int) -> str:
    """Return a sentence for operators about the end of Spark's Java in the middle of a job.

    Args:
        status: its exit status; negative: the signal that killed it.
    """
    if status == _SPARK_OUT_OF_MEMORY:
        return _OUT_OF_MEMORY
    if status < 0:
        name = signal.Signals(-status).name
        return (
            f"Spark's Java was killed by {name}: if not by a person, the machine ran out of memory; the earlier "
            "report is still in place."
        )
    return (
        f"Spark's Java ended with exit status {status} in the middle of the job; the earlier report is still in place."
    )


def chain(error: BaseException) -> list[str]:
    """Return the texts of an error and of all its causes, Java's included, unless Java has died meanwhile."""
    found: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(found) < 10:
        if isinstance(cause, SparkFailure):
            return [*found, str(cause)]
        found.append(type(cause).__name__)
        with suppress(Exception):  # Java's errors ask Java for their text
            found[-1] += f": {cause}"
            inner = getattr(cause, "java_exception", None)
            while inner is not None and len(found) < 10:
                found.append(str(inner.toString()))
                inner = inner.getCause()
        cause = cause.__cause__ or cause.__context__
    return found


def _short(text: str) -> str:
    return " ".join(text.split())[:_CAUSE_CHARACTERS_MAX]
