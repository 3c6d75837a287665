"""Reading /metrics as Prometheus does: with the parser of its own client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.gateway.server import PLAIN


class Scrape:
    """One scrape's samples."""

    def __init__(self, text: str) -> None:
        self.families = list(text_string_to_metric_families(text))
        self.samples = [sample for family in self.families for sample in family.samples]

    def value(self, name: str, **labels: str) -> float:
        """The value of the one series with these labels (those not named do not count, and are added up); 0 if none."""
        return sum(
            sample.value
            for sample in self.samples
            if sample.name == name and labels.items() <= dict(sample.labels).items()
        )

    def labels(self, name: str) -> list[dict[str, str]]:
        """The labels of all series of this name."""
        return [dict(sample.labels) for sample in self.samples if sample.name == name]

    @property
    def names(self) -> set[str]:
        """Names of all series."""
        return {sample.name for sample in self.samples}


def scrape(url: str, **headers: str) -> Scrape:
    """Scrape a gateway."""
    answer = httpx.get(f"{url}/metrics", headers=headers, **PLAIN)
    assert answer.status_code == 200, answer.text
    return Scrape(answer.text)


def since(before: Scrape, after: Scrape) -> Callable[..., float]:
    """How much a counter has grown between two scrapes, by name and labels."""

    def grown(name: str, **labels: Any) -> float:
        return after.value(name, **labels) - before.value(name, **labels)

    return grown
