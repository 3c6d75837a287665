"""wrk, a widely used HTTP load generator: https://github.com/wg/wrk, Debian's package `wrk`.

It complements this benchmark's own load generator where events are published over HTTP, as an independent check. Each
connection posts the next event when the last is answered. Results are read from its `done` hook as JSON.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.load import LoadError
from bench.processes import LOAD_CORE, pin

MISSING = "wrk is not installed (Debian: apt install wrk)"
NUMBER = "{number}"
"""Placeholder in a body for the number of the event, unique in a run."""

_GRACE_S = 30.0
_SCRIPT = """
wrk.method = "POST"
{headers}
local before, after = {before}, {after}
local number = 0
if after then
  request = function()
    number = number + 1
    return wrk.format(nil, nil, nil, before .. number .. after)
  end
else
  wrk.body = before
end
done = function(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\\n{{"requests": %d, "seconds": %f, "refused": %d, "failed": %d, "p50_ms": %f, "p99_ms": %f}}\\n',
    summary.requests, summary.duration / 1e6, errors.status, errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
"""


@dataclass(frozen=True, slots=True)
class Post:
    """A user's way to post one event to a server.

    Attributes:
        case: in tables.
        path, headers, body: of the request; NUMBER in the body is replaced, once.
    """

    case: str
    path: str
    headers: Sequence[tuple[str, str]]
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WrkOutcome:
    """The counts of wrk.

    Attributes:
        requests: answered ones.
        refused: of these, those whose status is 400 or above.
        failed: connections that failed, and requests that were not answered in time.
        seconds: duration of the run.
        p50_ms, p99_ms: from a request to its answer.
        cpu_s: CPU time of wrk itself.
    """

    requests: int
    refused: int
    failed: int
    seconds: float
    p50_ms: float
    p99_ms: float
    cpu_s: float


def find() -> str | None:
    """Return the program; None if it is not installed."""
    return shutil.which("wrk")


def run(program: str, folder: Path, port: int, post: Post, connections: int, seconds: float) -> WrkOutcome:
    """Post over `connections` connections for `seconds`. Raises LoadError."""
    script = folder / "wrk.lua"
    script.write_text(_script(post))
    command = [program, "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "-s", str(script)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(
            [*command, f"http://127.0.0.1:{port}{post.path}"],
            capture_output=True,
            text=True,
            timeout=seconds + _GRACE_S,
            preexec_fn=pin(LOAD_CORE),
        )
    except subprocess.TimeoutExpired:
        raise LoadError(f"wrk did not end within {seconds + _GRACE_S:g} s") from None
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    line = next((line for line in reversed(done.stdout.splitlines()) if line.startswith("{")), "")
    if done.returncode or not line:
        raise LoadError(f"wrk ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-500:]}")
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return WrkOutcome(**json.loads(line), cpu_s=cpu_s)


def _script(post: Post) -> str:
    before, numbered, after = post.body.partition(NUMBER)
    return _SCRIPT.format(
        headers="\n".join(f"wrk.headers[{_quoted(name)}] = {_quoted(value)}" for name, value in post.headers),
        before=_quoted(before),
        after=_quoted(after) if numbered else "nil",
    )


def _quoted(text: str) -> str:
    """Return `text` as a string of Lua."""
    return '"' + "".join(char if char.isalnum() else f"\\{ord(char):03d}" for char in text) + '"'
