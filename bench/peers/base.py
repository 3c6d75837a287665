"""The interface of a measured server: start it, describe its clients' bytes, read its cost."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from bench import wrk
from bench.load import ConnectionScript
from bench.processes import ServerProcesses, free_port


class Route(enum.Enum):
    """Way of publishing events."""

    HTTP = "HTTP"
    WEBSOCKET = "WebSocket"


@dataclass(frozen=True, slots=True)
class AnswerPatterns:
    """Bytes that load.c searches for in the answers to publish requests (see `bench.load.Plan`)."""

    good: str
    bad: tuple[str, ...]
    publisher_ready: str = ""


HTTP_ANSWERS = AnswerPatterns("HTTP/1.1 2", ("HTTP/1.1 4", "HTTP/1.1 5"))


class BenchServer(ABC):
    """One server with all its processes, pinned to one core. Use as a context manager.

    Attributes:
        name: on the command line.
        label: in tables and plots.
        durability: which failures an acknowledged event survives; printed beside publish numbers.
        routes: its ways to publish, and the answers on each.
        fanout_route: the cheapest of them for one publisher with many requests in flight, in order.
        batches: whether one request may have many events.
        ready: bytes that confirm a session, once per subscription if `ready_each`; empty where opening is subscribing.
        offset: see `bench.load.Plan`.
        replay_events_max: most stored events that a new session can be given at once; 0 where nothing is stored.
        sessions_max: most sessions to try: more would take too long.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    durability: ClassVar[str]
    routes: ClassVar[Mapping[Route, AnswerPatterns]]
    fanout_route: ClassVar[Route]
    batches: ClassVar[bool] = False
    ready: ClassVar[str] = ""
    ready_each: ClassVar[bool] = False
    offset: ClassVar[str] = ""
    replay_events_max: ClassVar[int] = 0
    sessions_max: ClassVar[int] = 10_000

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.processes = ServerProcesses(folder)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.processes.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.processes.stop()

    @classmethod
    @abstractmethod
    def missing(cls) -> str | None:
        """Return why this server cannot be measured here, in a sentence; None if it can."""

    @abstractmethod
    def start(self) -> None:
        """Start all its processes; return when it serves. Raises processes.CannotStart."""

    def prepare(self, streams: int, history_events: int = 1000) -> None:
        """Make `streams` channels with room for `history_events` stored events each, where that must be done
        beforehand.
        """
        return

    @abstractmethod
    def reader(self, streams: Sequence[int], *, from_start: bool = False) -> ConnectionScript:
        """Return a session on `streams`, from now on or from the oldest stored event."""

    @abstractmethod
    def publisher(self, route: Route) -> ConnectionScript:
        """Return a connection for publishing."""

    @abstractmethod
    def request(self, route: Route, stream: int, events: int = 1) -> bytes:
        """Return a request that publishes `events` events to `stream`, with marks for load.c to fill in."""

    def posts(self, stream: int) -> Sequence[wrk.Post]:
        """Return the ways in which its users publish one event to `stream` by an HTTP request; empty for none."""
        return ()

    def beside_cpu_s(self) -> float:
        """Return the CPU seconds of its processes that take no part in the measurement and are not counted."""
        return 0.0

    def resident_bytes(self) -> int:
        """Return the resident memory of the processes with the sessions."""
        return self.processes.resident_bytes()

    def stored(self, stream: int) -> int | None:
        """Return how many events the server states to have accepted on `stream`; None where it does not count."""
        return None
