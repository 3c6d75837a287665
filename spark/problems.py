"""What can go wrong with a job, as one sentence that says what to do."""

from __future__ import annotations

import errno
import re
import signal
from contextlib import suppress

_FULL = re.compile(r"No space left on device|Disk quota exceeded|not enough space|ENOSPC", re.IGNORECASE)
_OUT_OF_MEMORY = (
    "The job ran out of memory: give it more (--memory 4g) or a shorter period; the report of before is still in place."
)
_MEMORY = re.compile(r"OutOfMemoryError|Unable to acquire \d+ bytes of memory|SparkOutOfMemory")
_DENIED = re.compile(r"Permission denied|AccessControlException|AccessDenied")
_MASTER = re.compile(r"All masters are unresponsive|Could not parse Master URL|Master must either|Invalid master URL")
_CAUSE_CHARACTERS_MAX = 300
_SPARK_OUT_OF_MEMORY = 52
"""Exit status. Source: SparkExitCode.OOM."""


class Problem(Exception):
    """A job cannot go on; the text is one sentence for its operator."""


def sentence(error: BaseException, output: str) -> str:
    """What an operator is told about `error`, in one sentence.

    Args:
        error: what a job raised: ours, the system's or Spark's.
        output: where the job writes.
    """
    if isinstance(error, Problem):
        return str(error)
    text = " ".join(chain(error))
    if _FULL.search(text) or (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)):
        return f"The disk is full: neither {output} nor Spark's temporary folder (--work) takes more; the report of before is still in place."
    if _MEMORY.search(text):
        return _OUT_OF_MEMORY
    if _MASTER.search(text):
        return "The Spark master cannot be reached: check --master and that it runs."
    if _DENIED.search(text):
        return f"A file or folder may not be read or written: {_short(text)}"
    return f"The job failed: {_short(text)}"


def java_death(status: int) -> str:
    """What an operator is told when Spark's Java ended in the middle of a job.

    Args:
        status: its exit status; negative: the signal that killed it.
    """
    if status == _SPARK_OUT_OF_MEMORY:
        return _OUT_OF_MEMORY
    if status < 0:
        name = signal.Signals(-status).name
        return (
            f"Spark's Java was killed by {name}: if nobody did that, the machine ran out of memory; "
            "the report of before is still in place."
        )
    return f"Spark's Java ended with exit status {status} in the middle of the job; the report of before is still in place."


def chain(error: BaseException) -> list[str]:
    """The texts of an error and of all that caused it, Java's included, unless Java has died meanwhile."""
    found: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(found) < 10:
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
