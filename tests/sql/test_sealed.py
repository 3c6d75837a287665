"""Secrets at rest open only with the domain's key, at the place that they were sealed for."""

from __future__ import annotations

from typing import Any

import pytest

from eventing.sql.sealed import SealBroken, opened, sealed

SECRET = "whsec_ a secret of somebody's, with é"


def test_a_secret_is_opened_at_its_place() -> None:
    data = sealed(SECRET, "intake:a")
    assert SECRET.encode() not in data
    assert opened(data, "intake:a") == SECRET
    assert sealed(SECRET, "intake:a") != data, "equal secrets do not show"


def test_a_secret_moved_altered_or_of_another_key_does_not_open(settings: Any) -> None:
    data = sealed(SECRET, "intake:a")
    with pytest.raises(SealBroken):
        opened(data, "intake:b")
    for at in range(len(data)):
        with pytest.raises(SealBroken):
            opened(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], "intake:a")
        with pytest.raises(SealBroken):
            opened(data[:at], "intake:a")
    settings.SECRET_KEY = "another-secret-key-of-more-than-32-characters"
    with pytest.raises(SealBroken):
        opened(data, "intake:a")
