"""Keys that requests between domains are signed and checked with: believed for a second, never past their end."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from eventing.access.models import DomainKey
from eventing.access.services.keys import ensure_domain_key, key_rotate
from eventing.conf import config
from eventing.peering.selectors import recent_keys
from eventing.peering.selectors.recent_keys import domain_keys_recent, signing_key_recent
from tests.planes import principal

pytestmark = pytest.mark.usefixtures("db", "redis_url")


def rotated() -> str:
    return key_rotate(principal=principal("root", admin=True), signs_after_s=0).kid


def kid_of(key: dict[str, Any] | None) -> str:
    assert key is not None
    return str(key["kid"])


def test_keys_are_read_once_a_second_and_a_rotation_is_seen_by_then(monkeypatch: pytest.MonkeyPatch) -> None:
    first = ensure_domain_key()
    assert kid_of(signing_key_recent()) == first
    assert list(domain_keys_recent(config().domain)) == [first]
    second = rotated()
    assert kid_of(signing_key_recent()) == first
    assert list(domain_keys_recent(config().domain)) == [first]
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + recent_keys.CACHE_S)
    assert kid_of(signing_key_recent()) == second
    assert set(domain_keys_recent(config().domain)) == {first, second}


def test_a_key_that_has_ended_signs_no_more_however_recent_it_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    first, now = ensure_domain_key(), timezone.now()
    keys = DomainKey.objects.filter(kid=first)
    keys.update(not_before=now - timedelta(hours=1), not_after=now + timedelta(seconds=60))
    assert kid_of(signing_key_recent()) == first
    second = rotated()
    keys.update(not_after=now - timedelta(seconds=1))
    assert kid_of(signing_key_recent()) == first  # nothing says so here yet
    monkeypatch.setattr(time, "time", lambda: now.timestamp() + 61)
    assert kid_of(signing_key_recent()) == second


def test_a_domain_without_a_key_is_asked_again_at_once() -> None:
    assert signing_key_recent() is None
    assert kid_of(signing_key_recent() or {"kid": ensure_domain_key()}) == kid_of(signing_key_recent())
