"""Revocations in SQL and over REST: who may, what is covered, how much is kept, and how other processes learn of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone
from redis import Redis
from rest_framework.test import APIClient

from demo.harness.servers import wait_for
from eventing.access.models import DomainKey, Revocation
from eventing.access.selectors import revocations as selectors
from eventing.access.selectors.keys import signing_key
from eventing.access.services import revocations as services
from eventing.access.services.revocations import revocation_create, revocation_lift, revocations_purge
from eventing.access.services.tokens import token_create
from eventing.access.verification.revocations import Revocations, revocations
from eventing.access.verification.verifier import verifier
from eventing.core.container import fresh_container
from eventing.core.errors import Conflict, Forbidden, InvalidRequest, NotFound, QuotaExceeded, TokenRevoked
from eventing.core.principals import Principal
from eventing.store import keys
from tests.planes import in_threads, principal, problem_code

pytestmark = pytest.mark.usefixtures("stores")

ClientOf = Callable[..., APIClient]
URL = "/api/v1/revocations"


def bearer_of(token: str) -> APIClient:
    made = APIClient()
    made.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    return made


def revoke(client: APIClient, kind: str, value: str, **more: Any) -> Any:
    return client.post(URL, {"kind": kind, "value": value, **more}, format="json")


def is_refused(token: str) -> bool:
    """Whether a token is refused as revoked, with the problem that says so."""
    answer = bearer_of(token).get("/api/v1/rps")
    if answer.status_code == 200:
        return False
    assert (problem_code(answer), answer.status_code) == ("token-revoked", 401)
    assert answer["WWW-Authenticate"].startswith("Bearer")
    return True


def next_second(answer: Any) -> None:
    """Wait until tokens are no longer covered by a revocation of their subject."""
    before = datetime.fromisoformat(answer.json()["before"]).timestamp()
    assert before - time.time() <= 1
    wait_for(lambda: time.time() >= before, about="the second of the revocation is over")


# Who, and what is covered


def test_an_administrator_revokes_a_token_by_its_id_and_only_that(client_of: ClientOf) -> None:
    root = client_of("root", admin=True)
    one, two = token_create(subject="ann"), token_create(subject="ann")
    assert not is_refused(one.token)
    answer = revoke(root, "token", one.id, reason="found in a log")
    assert answer.status_code == 201
    document = answer.json()
    assert (document["kind"], document["value"]) == ("token", one.id)
    assert (document["issuer"], document["by"], document["reason"]) == ("localhost", "root", "found in a log")
    assert document["before"] is None
    assert is_refused(one.token)
    assert not is_refused(two.token)
    again = revoke(root, "token", one.id, reason="again")
    assert (again.status_code, again.json()) == (200, document)


def test_all_tokens_of_a_subject_are_revoked_and_those_issued_later_are_good(client_of: ClientOf) -> None:
    root = client_of("root", admin=True)
    old, other = token_create(subject="ann").token, token_create(subject="ben").token
    answer = revoke(root, "subject", "ann")
    assert is_refused(old)
    revoked_at = datetime.fromisoformat(answer.json()["created_at"])
    assert is_refused(token_create(subject="ann", now=revoked_at).token), "of the same second"
    assert not is_refused(other)
    next_second(answer)
    later = token_create(subject="ann").token
    assert not is_refused(later)
    assert revoke(root, "subject", "ann").status_code == 201
    assert is_refused(later), "revoked again, with the tokens issued meanwhile"
    assert Revocation.objects.count() == 1


def test_lifting_the_revocation_of_a_subject_makes_its_tokens_good_again(client_of: ClientOf) -> None:
    root = client_of("root", admin=True)
    token = token_create(subject="ann").token
    made = revoke(root, "subject", "ann").json()
    assert is_refused(token)
    assert problem_code(client_of("ben").delete(f"{URL}/{made['id']}")) == "forbidden"
    assert root.delete(f"{URL}/{made['id']}").status_code == 204
    assert not is_refused(token)
    assert problem_code(root.delete(f"{URL}/{made['id']}")) == "not-found"
    assert root.get(URL).json()["items"] == []
    assert revoke(root, "subject", "ann").status_code == 201
    assert is_refused(token)


def test_a_token_and_a_key_stay_revoked(client_of: ClientOf) -> None:
    root = client_of("root", admin=True)
    made = revoke(root, "token", "some-id").json()
    answer = root.delete(f"{URL}/{made['id']}")
    assert problem_code(answer) == "conflict"
    assert "subject" in answer.json()["detail"]


def test_a_revoked_key_of_the_domain_verifies_no_more_and_signs_no_more(client_of: ClientOf) -> None:
    root = client_of("root", admin=True)
    token = token_create(subject="ann").token
    kid = str(signing_key()["kid"])  # type: ignore[index]
    assert revoke(root, "key", kid).status_code == 201
    assert is_refused(token)
    assert problem_code(root.get(URL)) == "token-revoked", "the administrator's token was signed by it too"
    fresh = token_create(subject="root", admin=True).token
    assert str(signing_key()["kid"]) != kid  # type: ignore[index]
    assert bearer_of(fresh).get(URL).json()["items"][0]["value"] == kid
    assert kid not in [key["kid"] for key in APIClient().get("/.well-known/jwks.json").json()["keys"]]
    assert DomainKey.objects.get(kid=kid).not_after is not None


def test_a_key_that_the_domain_does_not_have_is_a_mistake_that_is_told(client_of: ClientOf) -> None:
    root = client_of("root", admin=True)
    assert problem_code(revoke(root, "key", "unknown")) == "not-found"
    assert revoke(root, "key", "unknown", issuer="https://idp.example").status_code == 201


def test_the_bearer_of_a_token_revokes_it_and_no_other(client_of: ClientOf) -> None:
    own, other = token_create(subject="ann", operations=["publish"]), token_create(subject="ann")
    client = bearer_of(own.token)
    assert problem_code(revoke(client, "token", other.id)) == "forbidden"
    assert problem_code(revoke(client, "subject", "ann")) == "forbidden"
    assert problem_code(revoke(client, "token", own.id, issuer="https://idp.example")) == "forbidden"
    assert problem_code(client.get(URL)) == "forbidden"
    answer = revoke(client, "token", own.id)
    assert answer.status_code == 201
    assert datetime.fromisoformat(answer.json()["until"]) == own.expires_at, "kept no longer than it could be used"
    assert is_refused(own.token)
    assert not is_refused(other.token)


def test_a_narrowed_administrators_token_revokes_nothing_but_itself(client_of: ClientOf) -> None:
    client = client_of("root", admin=True, operations=["administer"])
    assert problem_code(revoke(client, "subject", "ann")) == "forbidden"
    assert problem_code(client.get(URL)) == "forbidden"


def test_a_stranger_with_anothers_token_id_revokes_nothing_of_it(root: Principal) -> None:
    """An issuer that a policy names may give its tokens any id, also that of somebody else's token."""
    victim = token_create(subject="ann")
    for stranger in (
        Principal("https://evil.example", "eve", False, time.time() + 60, {}, local=False, token_id=victim.id),
        Principal(
            "localhost",
            "eve",
            False,
            time.time() + 60,
            {},
            local=False,
            token_id=victim.id,
            keys_from="https://evil.example/jwks",
        ),
    ):
        with pytest.raises(Forbidden):
            revocation_create(principal=stranger, kind="token", value=victim.id)
        issuer = "https://evil.example" if not stranger.keys_from else "localhost|https://evil.example/jwks"
        assert revocation_create(principal=stranger, kind="token", value=victim.id, issuer=issuer).made
    assert not is_refused(victim.token)


def test_the_holder_of_a_delegated_copy_does_not_revoke_the_original() -> None:
    class Narrowed:
        def permits(self, operation: str, rp: str, name: str) -> bool:
            return True

    delegate = Principal(
        "localhost",
        "ann",
        False,
        time.time() + 60,
        {},
        token_id="t",
        restriction=Narrowed(),
    )
    with pytest.raises(Forbidden):
        revocation_create(principal=delegate, kind="token", value="t")


def test_a_token_without_an_id_is_no_match_for_an_empty_one(ann: Principal) -> None:
    with pytest.raises(InvalidRequest):
        revocation_create(principal=ann, kind="token", value="")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"kind": "token"},
        {"kind": "token", "value": ""},
        {"kind": "token", "value": "x" * 256},
        {"kind": "token", "value": 5},
        {"kind": "token", "value": "a\0b"},
        {"kind": "everything", "value": "x"},
        {"kind": "token", "value": "x", "reason": "r" * 256},
        {"kind": "token", "value": "x", "issuer": "i" * 512},
        {"kind": "token", "value": "x", "token": "secret"},
    ],
)
def test_what_is_out_of_form_is_refused(client_of: ClientOf, body: dict[str, Any]) -> None:
    assert problem_code(client_of("root", admin=True).post(URL, body, format="json")) == "invalid-request"
    assert Revocation.objects.count() == 0


# The list


def test_the_list_has_pages_newest_first_and_filters(client_of: ClientOf) -> None:
    root = client_of("root", admin=True)
    for number in range(5):
        revoke(root, "token", f"t{number}")
    revoke(root, "subject", "ann")
    first = root.get(URL, {"limit": 4}).json()
    assert [item["value"] for item in first["items"]] == ["ann", "t4", "t3", "t2"]
    second = root.get(URL, {"limit": 4, "cursor": first["next"]}).json()
    assert ([item["value"] for item in second["items"]], second["next"]) == (["t1", "t0"], None)
    assert [item["value"] for item in root.get(URL, {"kind": "subject"}).json()["items"]] == ["ann"]
    assert [item["value"] for item in root.get(URL, {"value": "t3"}).json()["items"]] == ["t3"]
    assert problem_code(root.get(URL, {"kind": "x"})) == "invalid-request"
    for cursor in ("x", "cmV2b2NhdGlvbiB4", "cnBzIDE"):
        assert problem_code(root.get(URL, {"cursor": cursor})) == "invalid-cursor"
    for unknown in ("0", "x", "9" * 30, "-1"):
        assert problem_code(root.delete(f"{URL}/{unknown}")) == "not-found"


# Bounds


def test_the_ended_are_purged_in_bounded_batches(root: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    long_ago = timezone.now() - timedelta(days=3 * 366)
    for number in range(3):
        revocation_create(principal=root, kind="token", value=f"old-{number}", now=long_ago)
    revocation_create(principal=root, kind="token", value="new")
    monkeypatch.setattr(services, "PURGE_BATCH", 2)
    assert [revocations_purge(), revocations_purge(), revocations_purge()] == [2, 1, 0]
    assert list(Revocation.objects.values_list("value", flat=True)) == ["new"]


def test_a_full_table_makes_room_by_what_has_ended_and_else_refuses(
    root: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "REVOCATIONS_MAX", 3)
    long_ago = timezone.now() - timedelta(days=3 * 366)
    revocation_create(principal=root, kind="token", value="old", now=long_ago)
    for value in ("a", "b", "c"):
        revocation_create(principal=root, kind="token", value=value)
    with pytest.raises(QuotaExceeded, match="subject or a key"):
        revocation_create(principal=root, kind="subject", value="ann")
    assert not revocation_create(principal=root, kind="token", value="a").made, "what is there is no new row"


def test_bearers_cannot_use_up_the_administrators_room(root: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "REVOCATIONS_BY_BEARERS_MAX", 2)

    def own(token_id: str) -> Principal:
        return Principal("localhost", "ann", False, time.time() + 60, {}, token_id=token_id)

    for value in ("a", "b"):
        revocation_create(principal=own(value), kind="token", value=value)
    with pytest.raises(QuotaExceeded):
        revocation_create(principal=own("c"), kind="token", value="c")
    assert revocation_create(principal=root, kind="token", value="c").made


def test_the_same_revocation_many_times_at_once_is_one(root: Principal) -> None:
    made = in_threads(8, lambda _: revocation_create(principal=root, kind="token", value="t"))
    assert sorted(one.made for one in made) == [False] * 7 + [True]
    assert len({one.row.pk for one in made}) == 1


# Other processes


def test_a_process_reads_on_what_others_have_written(root: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "ENTRIES_AT_ONCE", 3)
    held = Revocations()
    ann = Principal("localhost", "ann", False, 9e9, {"iat": 1}, token_id="t7")
    assert held.refresh()
    assert not held.refresh()
    for number in range(10):
        revocation_create(principal=root, kind="token", value=f"t{number}")
    assert held.revoked(ann) is None
    assert held.refresh()
    assert held.revoked(ann) is not None
    assert len(held) == 10
    assert not held.refresh()
    made = revocation_create(principal=root, kind="subject", value="ann").row
    assert held.refresh()
    assert len(held) == 11
    revocation_lift(principal=root, revocation_id=str(made.pk))
    assert held.refresh()
    assert len(held) == 10
    fresh = Revocations()
    fresh.refresh()
    assert len(fresh) == 10


def test_rows_that_are_gone_do_not_keep_a_process_from_seeing_new_ones(root: Principal) -> None:
    held = Revocations()
    held.refresh()
    for value in ("a", "b"):
        revocation_create(principal=root, kind="token", value=value)
    held.refresh()
    Revocation.objects.filter(value="b").delete()
    held.refresh()
    assert len(held) == 1
    revocation_create(principal=root, kind="token", value="c")
    held.refresh()
    assert len(held) == 2


def test_while_sql_does_not_answer_what_is_known_stays_in_force(
    root: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = token_create(subject="ann")
    revocation_create(principal=root, kind="token", value=token.id)
    with pytest.raises(TokenRevoked):
        verifier().verify(token.token)

    def broken(*, since: int) -> Any:
        raise OperationalError("gone")

    monkeypatch.setattr(selectors, "revocation_entries", broken)
    monkeypatch.setattr(revocations(), "_tried_at", float("-inf"))  # it is due
    with pytest.raises(TokenRevoked):
        verifier().verify(token.token)
    assert verifier().verify(token_create(subject="ben").token).subject == "ben"
    with fresh_container(), pytest.raises(OperationalError):
        verifier().verify(token_create(subject="carl").token)


def test_every_gateway_is_told(root: Principal, redis_url: str) -> None:
    with Redis.from_url(redis_url) as client, client.pubsub(ignore_subscribe_messages=True) as ear:
        ear.subscribe(keys.REVOCATION_CHANNEL)
        wait_for(lambda: client.pubsub_numsub(keys.REVOCATION_CHANNEL)[0][1] == 1, about="subscribed")
        made = revocation_create(principal=root, kind="subject", value="ann").row

        def heard() -> bool:
            return any(ear.get_message(timeout=0.1) is not None for _ in range(2))

        wait_for(heard, about="announced")
        revocation_lift(principal=root, revocation_id=str(made.pk))
        wait_for(heard, about="announced")


def test_without_redis_revoking_is_as_quick(root: Principal, configure: Callable[..., None], redis_url: str) -> None:
    configure(redis_url="redis://127.0.0.1:1/0")
    began = time.monotonic()
    for number in range(20):
        revocation_create(principal=root, kind="token", value=f"t{number}")
    assert time.monotonic() - began < 15
    assert Revocation.objects.count() == 20


def test_the_row_says_when_nothing_can_be_covered_any_more(root: Principal) -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    local = revocation_create(principal=root, kind="subject", value="ann", now=now).row
    foreign = revocation_create(principal=root, kind="subject", value="ann", issuer="https://a.example", now=now).row
    assert local.until - now == timedelta(days=366)
    assert foreign.until - now > timedelta(days=3650)
    assert foreign.before - now == timedelta(seconds=31)  # type: ignore[operator]


def test_lifting_needs_an_administrator_and_a_subject(root: Principal, ann: Principal) -> None:
    row = revocation_create(principal=root, kind="subject", value="x").row
    token = revocation_create(principal=root, kind="token", value="x").row
    with pytest.raises(Forbidden):
        revocation_lift(principal=ann, revocation_id=str(row.pk))
    with pytest.raises(Forbidden):
        revocation_lift(principal=principal("r", admin=True, ops=["describe"]), revocation_id=str(row.pk))
    with pytest.raises(Conflict):
        revocation_lift(principal=root, revocation_id=str(token.pk))
    with pytest.raises(NotFound):
        revocation_lift(principal=root, revocation_id="123456")
