"""What the sampler and the watcher beside a gateway see of it: no more than this of its insides."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Protocol

from redis.asyncio import Redis

from eventing.core.config import Config
from eventing.log.reader import LogReader
from eventing.rps.rules.descriptor import Descriptor


class DescriptorsView(Protocol):
    """The descriptors that the gateway has in memory."""

    async def get(self, reference: str) -> Descriptor:
        """The descriptor of an RP, read if it is not in memory. Raises HeraldError."""

    def peek(self, reference: str) -> Descriptor | None:
        """The descriptor if it is in memory."""


class ChannelView(Protocol):
    """The live state of one RP."""

    @property
    def readers(self) -> int:
        """How many read it here."""


class HubView(Protocol):
    """The live connections."""

    @property
    def sessions(self) -> Sized:
        """The sessions of this gateway."""

    @property
    def administrative(self) -> Mapping[str, ChannelView]:
        """The channels of administrative RPs, by RP id."""


class GatewayView(Protocol):
    """One gateway process."""

    @property
    def id(self) -> str:
        """This life of the process among the domain's gateways."""

    @property
    def config(self) -> Config:
        """The settings that it was made with."""

    @property
    def redis(self) -> Redis:
        """Its connections to Redis."""

    @property
    def reader(self) -> LogReader:
        """Its reads of logs."""

    @property
    def descriptors(self) -> DescriptorsView:
        """Its descriptors."""

    @property
    def hub(self) -> HubView:
        """Its connections."""

    def clock(self) -> float:
        """The wall clock, Unix seconds."""
