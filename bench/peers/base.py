"""What a scenario needs of a server: start it, describe what its clients say, and read what it costs."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from bench import wrk
from bench.load import Client
from bench.processes import Group, free_port


class Route(enum.Enum):
    """How events are published."""

    HTTP = "HTTP"
    WEBSOCKET = "WebSocket"


@dataclass(frozen=True, slots=True)
class Answers:
    """What load.c looks for in the answers to publish requests (see `bench.load.Plan`)."""

    good: str
    bad: tuple[str, ...]
    publisher_ready: str = ""


HTTP_ANSWERS = Answers("HTTP/1.1 2", ("HTTP/1.1 4", "HTTP/1.1 5"))


class Server(ABC):
    """One server and all processes it consists of, pinned to one core. Use as a context manager.

    Attributes:
        name: on the command line.
        label: in tables and plots.
        durability: what an acknowledged event survives; printed beside publish numbers.
        routes: the ways to publish that it has, and the answers on each.
        fanout_route: the cheapest of them for one publisher with many requests in flight, in order.
        batches: whether one request may carry many events.
        ready: told to a session when it is served, once per subscription if `ready_each`; empty where opening is subscribing.
        offset: see `bench.load.Plan`.
        replay_events_max: how many stored events a new session can be given in one go; 0 where nothing is stored.
        sessions_max: sessions beyond this are not tried: it would take too long.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    durability: ClassVar[str]
    routes: ClassVar[Mapping[Route, Answers]]
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
        self.processes = Group(folder)

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
        """Why this server cannot be measured here, in a sentence; None if it can."""

    @abstractmethod
    def start(self) -> None:
        """Start every process of it; return when it serves. Raises processes.CannotStart."""

    def prepare(self, streams: int, history_events: int = 1000) -> None:
        """Make `streams` channels of `history_events` stored events each, where that must be done beforehand."""
        return

    @abstractmethod
    def reader(self, streams: Sequence[int], *, from_start: bool = False) -> Client:
        """A session on `streams`, from now on or from the oldest stored event."""

    @abstractmethod
    def publisher(self, route: Route) -> Client:
        """A connection for publishing."""

    @abstractmethod
    def request(self, route: Route, stream: int, events: int = 1) -> bytes:
        """A request that publishes `events` events to `stream`, with marks for load.c to fill in."""

    def posts(self, stream: int) -> Sequence[wrk.Post]:
        """The ways in which its users publish one event to `stream` by an HTTP request; none if it has no such way."""
        return ()

    def beside_cpu_s(self) -> float:
        """CPU seconds of those of its processes that take no part in what is measured, and are not counted."""
        return 0.0

    def resident_bytes(self) -> int:
        """Resident memory of the processes that hold the sessions."""
        return self.processes.resident_bytes()

    def stored(self, stream: int) -> int | None:
        """How many events the server says it has accepted on `stream`; None where it does not count."""
        return None
