"""Answer to a scrape: the joined values of all processes of the domain, in the format that the scraper requests.

Blocks for some milliseconds; never call it on an event loop.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from prometheus_client import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector

from eventing.telemetry import folder
from eventing.telemetry.metrics import REGISTRY

TRIES = 3  # a file of a process that is just starting may be read half-made


class _Joined:
    """Collector for prometheus_client's encoders."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> list[Metric]:
        """Return all metrics."""
        return self._metrics


def scrape(accept: str) -> tuple[bytes, str]:
    """Return the answer to a scrape and its content type: OpenMetrics where `accept` asks for it, else Prometheus' text."""
    encode, content_type = choose_encoder(accept)
    return encode(_Joined(_told(joined()))), content_type


def joined() -> list[Metric]:
    """Collect the metrics of all processes of the domain; of this one alone if it has joined no folder."""
    path = folder.folder_in_use()
    if path is None:
        return list(REGISTRY.collect())
    for _ in range(TRIES - 1):
        try:
            return _read(path)
        except (ValueError, RuntimeError, struct.error, json.JSONDecodeError):
            continue
    return _read(path)


def _read(path: Path) -> list[Metric]:
    with folder.files(path) as files:
        collector: Any = MultiProcessCollector  # untyped
        return list(collector.merge(files, accumulate=True))


def _told(metrics: Iterable[Metric]) -> list[Metric]:
    """Sort the metrics, without the gauges of removed things (a removed peer): those were set to NaN."""
    told = []
    for metric in sorted(metrics, key=lambda one: one.name):
        metric.samples = [sample for sample in metric.samples if not math.isnan(sample.value)]
        if metric.samples:
            told.append(metric)
    return told
