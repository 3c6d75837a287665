"""Protocol type of a gateway: the members that its load sampler and its watcher may use."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Protocol

from eventing.core.config import Config
from eventing.log.reader import LogReader
from eventing.rps.rules.descriptor import Descriptor
from eventing.store.connection import AsyncRedis


class DescriptorsView(Protocol):
    """The descriptors that the gateway has in memory."""

    async def get(self, reference: str) -> Descriptor:
        """Return the descriptor of an RP, read if it is not in memory. Raises HeraldError."""

    def peek(self, reference: str) -> Descriptor | None:
        """Return the descriptor if it is in memory."""


class ChannelView(Protocol):
    """The live state of one RP."""

    @property
    def readers(self) -> int:
        """Return the number of readers here."""


class HubView(Protocol):
    """The live connections."""

    @property
    def sessions(self) -> Sized:
        """Return the sessions of this gateway."""

    @property
    def administrative(self) -> Mapping[str, ChannelView]:
        """Return the channels of administrative RPs, by RP id."""


class ReaderMovesView(Protocol):
    """The moves of readers to other domains."""

    def leaving(self) -> Mapping[str, int]:
        """Return by RP how many sessions were redirected and are still here."""


class GatewayView(Protocol):
    """One gateway process."""

    @property
    def id(self) -> str:
        """Return the id of this process, unique per start, among the domain's gateways."""

    @property
    def config(self) -> Config:
        """Return the settings of the gateway."""

    def gateways_counted(self, count: int) -> None:
        """Handle the number of the domain's live gateways, with this one."""

    @property
    def redis(self) -> AsyncRedis:
        """Return the gateway's connections to Redis."""

    @property
    def reader(self) -> LogReader:
        """Return the gateway's reader of logs."""

    @property
    def descriptors(self) -> DescriptorsView:
        """Return the gateway's descriptors."""

    @property
    def hub(self) -> HubView:
        """Return the gateway's connections."""

    @property
    def reader_moves(self) -> ReaderMovesView:
        """Return the gateway's moves of readers."""

    def clock(self) -> float:
        """Return the wall clock, Unix seconds."""

    async def pause(self, period_s: float) -> float:
        """Sleep between two turns of periodic work: `period_s`, or longer while nothing happens. Returns how many seconds late the
        pause ended."""
