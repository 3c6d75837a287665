"""Driver of the load generator (load.c): compiles it once, passes it a plan, steps through its stages, reads the
result.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.processes import LOAD_CORE, pin

SOURCE = Path(__file__).with_name("load.c")
CONNECT_WINDOW = 64  # handshakes in flight at a time
SOURCES = 4  # client addresses 127.0.0.1 and following, so that no run is short of ports


class LoadError(Exception):
    """The load generator, or a connection of it, failed; the message states how."""


@dataclass(frozen=True, slots=True)
class ConnectionScript:
    """The bytes that one connection sends first.

    Attributes:
        open: the WebSocket upgrade request; empty for a plain HTTP connection.
        hello: sent once the connection is open, such as subscriptions; may be empty.
    """

    open: bytes = b""
    hello: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    """One run of the load generator.

    Attributes:
        port: of the server, on 127.0.0.1.
        sessions_port: of the server that the sessions connect to, if another; 0: the same.
        sessions: the receiving connections.
        publishers: the publishing connections, used in turn.
        templates: requests to publish, used in turn, as made with `bench.wire`.
        events_per_request: events in each template.
        ready: bytes of a frame that confirms a session's hello, `ready_count` times in all; empty: at once.
        publisher_ready: the same for publishers, once.
        good, bad: bytes found once in the answer to each publish request; over HTTP all of one length.
        offset: bytes in a frame before the number that must rise by one from frame to frame; empty: not checked.
        rate: events per second; 0 for as fast as `window` allows.
        seconds: longest time of publishing.
        count: most events to publish; 0 for the number from rate and seconds.
        window: most unanswered requests per publisher.
        streams: number of streams named in the templates' marks.
        by_stream: whether every stream is read by one session, which may read many; otherwise all sessions read stream
            0.
        deliveries_per_event: how often each event must arrive.
        expect: instead of publishing, send hello and await this many events per session; 0 for a normal run.
        drain_s: an event that has not arrived this long after the last answer or delivery, or five times as long after
            the last publish, is lost; a request without an answer by then is unanswered.
    """

    port: int
    sessions_port: int = 0
    sessions: Sequence[ConnectionScript] = ()
    publishers: Sequence[ConnectionScript] = ()
    templates: Sequence[bytes] = ()
    events_per_request: int = 1
    ready: str = ""
    ready_count: int = 1
    publisher_ready: str = ""
    good: str = ""
    bad: Sequence[str] = ()
    offset: str = ""
    rate: float = 0.0
    seconds: float = 0.0
    count: int = 0
    window: int = 1
    streams: int = 1
    by_stream: bool = False
    deliveries_per_event: int = 0
    expect: int = 0
    drain_s: float = 2.0

    def encode(self) -> bytes:
        """Return the plan as load.c reads it: lines `key value`, an empty line, then length-prefixed byte strings."""
        numbers = {
            "port": self.port, "sessions_port": self.sessions_port, "sources": SOURCES, "sessions": len(self.sessions), "publishers": len(self.publishers),
            "templates": len(self.templates), "connect_window": CONNECT_WINDOW, "window": self.window,
            "streams": self.streams, "by_stream": int(self.by_stream), "ready_count": self.ready_count,
            "events_per_request": self.events_per_request, "deliveries_per_event": self.deliveries_per_event,
            "expect": self.expect, "count": self.count, "rate": self.rate, "seconds": self.seconds, "drain_s": self.drain_s,
        }  # fmt: skip
        texts = {"ready": self.ready, "publisher_ready": self.publisher_ready, "good": self.good, "offset": self.offset}
        lines = [f"{key} {value}" for key, value in {**numbers, **texts}.items()] + [f"bad {text}" for text in self.bad]
        parts = [part for client in (*self.sessions, *self.publishers) for part in (client.open, client.hello)]
        parts += self.templates
        return ("\n".join(lines) + "\n\n").encode() + b"".join(struct.pack("<I", len(part)) + part for part in parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOutcome:
    """The counts of load.c. Times in seconds from the start of the run, delays in milliseconds.

    Attributes:
        deliveries: events received, each once and in order.
        unanswered: requests without an answer, whose events nobody has promised.
        lost: further events that did not arrive, summed over sessions; `sessions_short` counts those sessions.
        repeated: events received again, or after a later one; `skipped`: numbers jumped over.
        broken_offsets: offsets not one above the previous frame's; `torn`: marks cut by the end of a frame.
        answer_p50_ms: delay from a publish request to its answer.
        received_s, answered_s: times of the last event and of the last answer.
        cpu_s: CPU time of the load generator itself, since its start.
    """

    published: int
    publish_s: float
    requests: int
    good: int
    bad: int
    answered_s: float
    received_s: float
    deliveries: int
    unanswered: int
    lost: int
    sessions_short: int
    repeated: int
    skipped: int
    broken_offsets: int
    torn: int
    frames: int
    bytes: int
    closed: int
    complaint: str
    p50_ms: float
    p99_ms: float
    max_ms: float
    answer_p50_ms: float
    answer_p99_ms: float
    cpu_s: float
    elapsed_s: float

    @property
    def flaws(self) -> list[str]:
        """Return what a correct server would not have done, in words; empty for none."""
        counts = {
            "unanswered": self.unanswered, "lost": self.lost, "repeated": self.repeated, "skipped": self.skipped, "broken offsets": self.broken_offsets,
            "torn": self.torn, "refused": self.bad, "closed": self.closed,
        }  # fmt: skip
        found = [f"{count:,} {what}" for what, count in counts.items() if count]
        return [*found, self.complaint] if found and self.complaint else found


def compile_load(folder: Path) -> Path:
    """Return the compiled load generator in `folder`, built if it is not up to date. Raises LoadError without a C
    compiler.
    """
    program = folder / "load"
    if program.exists() and program.stat().st_mtime > SOURCE.stat().st_mtime:
        return program
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise LoadError("The load generator needs a C compiler. Install gcc (Debian: apt install gcc libc6-dev).")
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / f"load-{os.getpid()}"  # renamed when complete: another benchmark may be running the present one
    built = subprocess.run(
        [compiler, "-O2", "-Wall", "-Wextra", "-o", str(fresh), str(SOURCE)], capture_output=True, text=True
    )
    if built.returncode:
        raise LoadError(f"The load generator does not compile:\n{built.stderr}")
    fresh.replace(program)
    return program


@dataclass(slots=True)
class Load:
    """One run: enter it, call the stages in turn, leave it (which closes all its connections)."""

    program: Path
    plan: LoadPlan
    plan_path: Path
    _process: subprocess.Popen[str] | None = field(default=None, init=False)

    def __enter__(self) -> Load:
        self.plan_path.write_bytes(self.plan.encode())
        self._process = subprocess.Popen(
            [str(self.program), str(self.plan_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=pin(LOAD_CORE),
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        if kind is not None:
            self._process.kill()
        self._process.communicate()
        self.plan_path.unlink()

    def open(self) -> float:
        """Connect and upgrade all; return the seconds it took. Raises LoadError if one did not open."""
        return self._brought_up()

    def ready(self) -> float:
        """Send hello and await readiness of all; return the seconds it took. Raises LoadError if one failed."""
        self._go_on()
        return self._brought_up()

    def run(self) -> LoadOutcome:
        """Publish and receive, to the end."""
        self._go_on()
        stage = self._read_stage()
        return LoadOutcome(**{name: value for name, value in stage.items() if name in LoadOutcome.__slots__})

    def _go_on(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def _brought_up(self) -> float:
        stage = self._read_stage()
        if stage["closed"]:
            raise LoadError(f"{stage['closed']} of {stage['wanted']} connections failed: {stage['complaint']}")
        if stage["reached"] < stage["wanted"]:
            raise LoadError(
                f"{stage['reached']} of {stage['wanted']} connections are {stage['stage']}, the others hang"
            )
        return float(stage["elapsed_s"])

    def _read_stage(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            assert self._process.stderr is not None
            raise LoadError(f"The load generator ended: {self._process.stderr.read().strip()}")
        result: dict[str, Any] = json.loads(line)
        return result
