"""The session machine answers every vector as expected; client/js/test/vectors.test.js proves the same of the one in JavaScript."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.client.session_machine import play
from tests.client.session_vectors import FILE, SCENARIOS, document


def test_the_vectors_are_current() -> None:
    stale = "run: .venv/bin/python -m tests.client.session_vectors"
    assert FILE.exists(), stale
    assert FILE.read_text() == document(), stale


@pytest.mark.parametrize("scenario", json.loads(document())["scenarios"], ids=[one["name"] for one in SCENARIOS])
def test_every_step_gives_what_the_vector_says(scenario: dict[str, Any]) -> None:
    for number, outputs, expected in play(scenario):
        assert outputs == expected, f"step {number}: {scenario['steps'][number - 1]['in']}"
