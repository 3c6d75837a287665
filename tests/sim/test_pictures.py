"""The pictures of docs/federation/overlay-explained.md show what its text says. They change with the machines: `make docs` draws them."""

from __future__ import annotations

from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest

from eventing.sim.pictures.drawings import pictures
from eventing.sim.pictures.recording import CRASHED, DOMAINS, LAST, WARM, Recording, record

FOLDER = Path(__file__).parents[2] / "docs" / "federation" / "overlay-pictures"


@pytest.fixture(scope="module")
def recording() -> Recording:
    return record(Random)


def test_the_same_run_is_drawn_as_the_same_small_files(recording: Recording) -> None:
    drawn = pictures(recording)
    assert pictures(record(Random)) == drawn
    assert {path.name for path in FOLDER.iterdir()} == set(drawn)
    for text in [*drawn.values(), *(path.read_text() for path in FOLDER.iterdir())]:
        ElementTree.fromstring(text)
        assert len(text) < 20_000


def test_every_domain_is_reached_over_a_tree_that_stays_one_after_a_crash(recording: Recording) -> None:
    first, warm, last = (recording.spreads[number] for number in (1, WARM, LAST))
    assert len(first.came_from) == len(warm.came_from) == DOMAINS - 1
    assert len(last.came_from) == DOMAINS - CRASHED - 1
    assert len(first.copies) > DOMAINS
    assert len(warm.copies) <= 3
    assert len(last.copies) <= 3
    assert not recording.crashed.intersection(last.came_from)
    for spread in (first, warm, last):
        for domain, sender in spread.came_from.items():
            assert sender == spread.origin or sender in spread.came_from
            assert sender in recording.links[domain] or spread is not first  # later links are others
