"""A crowd's readers detect what a domain must not do: an event that is missing, doubled or out of order, and an end that nobody ordered."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest
from herald import Event, HeraldError, Received

from demo.harness.crowd_process import CrowdOfReaders, CrowdReader

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
async def crowd() -> CrowdOfReaders:
    return CrowdOfReaders([NOWHERE, "http://127.0.0.1:19"], "rp", measures=True)


@pytest.fixture
async def reader(crowd: CrowdOfReaders) -> AsyncIterator[CrowdReader]:
    made = CrowdReader(crowd, ("rp", "rp"))
    yield made
    await made.connection.close()


def numbered(number: int, age_s: float = 0.0) -> Received:
    data = {"n": number, "at": time.monotonic() - age_s}
    return Received(Event(id=str(number), source="/fame", data=data), "rp", "e", number, f"e:{number}")


async def test_numbers_that_are_missing_doubled_or_late_are_counted(crowd: CrowdOfReaders, reader: CrowdReader) -> None:
    for number in (5, 6, 7):
        reader.put(numbered(number), 1)
    assert (crowd.received, crowd.missing, crowd.doubled) == (3, 0, 0), "a reader begins with any number"
    for number in (7, 10, 9):
        reader.put(numbered(number), 1)
    assert (crowd.received, crowd.missing, crowd.doubled, reader.last) == (6, 2, 2, 10)


async def test_delays_are_those_since_the_report_before_with_the_domain(
    crowd: CrowdOfReaders, reader: CrowdReader
) -> None:
    reader.put(numbered(1, age_s=2.0), 1)
    ((url, _, delay_ms),) = crowd.report().delays_ms
    assert url == NOWHERE
    assert delay_ms >= 2000
    assert crowd.report().delays_ms == []


async def test_an_end_by_an_error_is_reported(crowd: CrowdOfReaders, reader: CrowdReader) -> None:
    reader.established(None)
    assert reader.is_open
    reader.end(HeraldError("gone"))
    assert not reader.is_open
    assert crowd.report().errors == [f"{NOWHERE}: gone"]
