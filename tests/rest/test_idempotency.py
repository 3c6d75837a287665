"""A creation repeated with its key is done once and answered the same, whatever crashes or races."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from eventing.core.errors import Conflict
from eventing.rest import idempotency as api_idempotency
from eventing.rest import idempotency_records
from eventing.rest.idempotency_model import IdempotencyRecord
from eventing.rest.idempotency_records import (
    CLAIM_S,
    KEPT_S,
    IdempotencyClaim,
    claim_fulfil,
    idempotency_claim,
    idempotency_purge,
)
from eventing.rps.models import RendezvousPoint
from eventing.subscriptions.models import Subscription
from tests.planes import in_threads, principal, problem_code

pytestmark = pytest.mark.usefixtures("stores")

ASKED: dict[str, Any] = {"principal": principal("ann"), "key": "k", "method": "POST", "path": "/p", "body": {}}


def create(api: APIClient, key: str, body: Any = None, path: str = "/api/v1/rps") -> Any:
    return api.post(path, body or {}, format="json", headers={"Idempotency-Key": key})


def test_a_repetition_gets_the_same_answer_and_makes_nothing(api: APIClient) -> None:
    first = create(api, "k", {"title": "T", "lease_s": 60})
    again = create(api, "k", {"lease_s": 60, "title": "T"})
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert (again["ETag"], again["Location"]) == (first["ETag"], first["Location"])
    assert RendezvousPoint.objects.count() == 1


def test_subscriptions_are_created_once_too(api: APIClient) -> None:
    rp = create(api, "a").json()["id"]
    path = f"/api/v1/rps/{rp}/subscriptions"
    assert create(api, "k", path=path).json() == create(api, "k", path=path).json()
    assert Subscription.objects.count() == 1


def test_the_key_for_another_request_is_refused(api: APIClient) -> None:
    rp = create(api, "k", {"title": "T"}).json()["id"]
    assert problem_code(create(api, "k", {"title": "U"})) == "idempotency-mismatch"
    assert problem_code(create(api, "k", path=f"/api/v1/rps/{rp}/subscriptions")) == "idempotency-mismatch"


def test_keys_of_different_principals_are_different(api: APIClient, client_of: Callable[..., APIClient]) -> None:
    assert create(api, "k").json()["id"] != create(client_of("ben"), "k").json()["id"]


def test_a_refusal_gives_the_key_back(api: APIClient) -> None:
    assert create(api, "k", {"name": "a//b"}).status_code == 400
    assert create(api, "k", {"name": "a/b"}).status_code == 201


@pytest.mark.parametrize("key", ["", "x" * 256, "ä", "a\tb"])
def test_a_key_that_is_no_key_is_refused(api: APIClient, key: str) -> None:
    assert problem_code(create(api, key)) == "invalid-request"


def test_a_request_while_the_first_still_runs_is_refused() -> None:
    assert isinstance(idempotency_claim(**ASKED), IdempotencyClaim)
    with pytest.raises(Conflict) as refused:
        idempotency_claim(**ASKED)
    assert refused.value.retry_after_s == 1


def test_racing_claims_are_granted_once() -> None:
    results = in_threads(8, lambda _: idempotency_claim(**ASKED))
    assert sum(isinstance(result, IdempotencyClaim) for result in results) == 1
    assert sum(isinstance(result, Conflict) for result in results) == 7


def test_racing_creations_make_one(api: APIClient) -> None:
    codes = [response.status_code for response in in_threads(8, lambda _: create(api, "k", {"title": "T"}))]
    assert set(codes) <= {201, 409}
    assert 201 in codes
    assert RendezvousPoint.objects.count() == 1


def test_a_claim_left_by_a_crash_is_taken_over_and_the_late_one_undone() -> None:
    now = timezone.now()
    left = idempotency_claim(**ASKED, now=now)
    taken = idempotency_claim(**ASKED, now=now + timedelta(seconds=CLAIM_S))
    assert isinstance(left, IdempotencyClaim)
    assert isinstance(taken, IdempotencyClaim)
    claim_fulfil(taken, "rp")
    with pytest.raises(Conflict):
        claim_fulfil(left, "other")


def test_a_crash_between_creation_and_answer_is_answered_from_what_was_made(
    api: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(**_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(api_idempotency, "idempotency_answer", crash)
    with pytest.raises(KeyboardInterrupt):
        create(api, "k", {"title": "T"})
    monkeypatch.undo()
    again = create(api, "k", {"title": "T"})
    assert again.status_code == 201
    assert again.json()["id"] == RendezvousPoint.objects.get().id


def test_keys_are_kept_a_day_and_purged_in_bounded_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    now = timezone.now()
    for number in range(5):
        idempotency_claim(**{**ASKED, "key": str(number)}, now=now)
    monkeypatch.setattr(idempotency_records, "PURGE_BATCH", 3)
    assert idempotency_purge(now=now + timedelta(seconds=KEPT_S - 1)) == 0
    late = now + timedelta(seconds=KEPT_S)
    assert isinstance(idempotency_claim(**{**ASKED, "key": "0", "path": "/other"}, now=late), IdempotencyClaim)
    assert [idempotency_purge(now=late) for _ in range(3)] == [3, 1, 0]
    assert IdempotencyRecord.objects.count() == 1


def test_the_keys_of_a_principal_are_bounded(api: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency_records, "KEYS_PER_PRINCIPAL_MAX", 2)
    create(api, "1"), create(api, "2")
    refused = create(api, "3")
    assert problem_code(refused) == "rate-limited"
    assert int(refused["Retry-After"]) > 0
    assert create(api, "1").status_code == 201
