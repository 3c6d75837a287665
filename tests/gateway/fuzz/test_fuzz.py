"""A small run of the fuzzer: nothing that a stranger sends is answered by a server error, logged as one, or ends the process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.fuzz.__main__ import SETTINGS, fuzz, text_of
from tests.gateway.fuzz.inputs import KINDS, Target, made
from tests.gateway.fuzz.running import kinds
from tests.gateway.server import LiveGateway, Prepared

INPUTS = 2000
SEED = 14


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[LiveGateway]:
    """A gateway without rates."""
    with LiveGateway(tmp_path_factory.mktemp("fuzz") / "var", prepared, **SETTINGS) as running:
        yield running


@pytest.mark.processes
def test_two_thousand_inputs_find_nothing(target: LiveGateway) -> None:
    report = fuzz(target, SEED, INPUTS)
    assert not report.findings, "\n".join(text_of(finding, SEED) for finding in report.findings)
    assert report.inputs == INPUTS
    assert {kind for kind, _ in report.outcomes} == set(KINDS)


def test_an_input_is_made_again_from_its_seed_and_number() -> None:
    somewhere = Target([("GET", "/api/v1/rps/{reference}")], ["a"], ["t"], "rp", "sub")
    for number, kind in kinds(0, 200):
        assert made(somewhere, 1, number, kind) == made(somewhere, 1, number, kind)
    assert made(somewhere, 1, 1, "http") != made(somewhere, 2, 1, "http")
