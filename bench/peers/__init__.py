"""The servers that are measured, each behind the same interface (base.Server)."""

from __future__ import annotations

from bench.peers.base import BenchServer, Route
from bench.peers.channels import Channels
from bench.peers.herald import Herald
from bench.peers.nats import Nats
from bench.peers.nchan import Nchan

SERVERS: dict[str, type[BenchServer]] = {server.name: server for server in (Herald, Nchan, Nats, Channels)}

__all__ = ["SERVERS", "BenchServer", "Route"]
