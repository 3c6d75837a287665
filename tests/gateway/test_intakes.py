"""POST /hooks/{token}: webhooks of other systems become events, and nothing is published that its sender did not sign."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from demo.harness.servers import wait_for
from tests.gateway.server import ADMIN, BATCH, PLAIN, STRUCTURED, LiveGateway, event

SECRET = "a-secret-that-github-signs-with"
PUSHED = {"ref": "refs/heads/main", "repository": {"url": "https://api.github.com/repos/o/r"}}


@pytest.fixture
def sender() -> Iterator[httpx.Client]:
    """A client without any token."""
    with httpx.Client(**PLAIN) as made:
        yield made


def create(live_gateway: LiveGateway, rp: str, **members: Any) -> dict[str, Any]:
    """A new intake; `url` leads to the gateway of the test."""
    answer = live_gateway.admin.post(f"/api/v1/rps/{rp}/intakes", json=members)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    path = httpx.URL(made["url"]).path
    assert path.startswith("/hooks/hk_")
    return {**made, "url": live_gateway.url() + path}


def github(body: bytes, *, secret: str = SECRET, delivery: str = "d-1", name: str = "push") -> dict[str, str]:
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {
        "content-type": "application/json",
        "x-github-event": name,
        "x-github-delivery": delivery,
        "x-hub-signature-256": f"sha256={signature}",
    }


def events(live_gateway: LiveGateway, rp: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = live_gateway.admin.get(f"/api/v1/rps/{rp}/events").json()["events"]
    return found


def refused(answer: httpx.Response, status: int, code: str) -> None:
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    assert answer.json()["type"] == f"urn:herald:problem:{code}"


def test_a_signed_webhook_is_published_once_however_often_it_is_delivered(
    live_gateway: LiveGateway, rp: str, sender: httpx.Client
) -> None:
    made = create(live_gateway, rp, format="github", secret=SECRET)
    body = json.dumps(PUSHED).encode()
    first = sender.post(made["url"], content=body, headers=github(body))
    again = sender.post(made["url"], content=body, headers=github(body))
    assert (first.status_code, again.status_code) == (201, 201), first.text
    assert (first.json()["duplicate"], again.json()["duplicate"]) == (False, True)
    (found,) = events(live_gateway, rp)
    assert (found["id"], found["type"]) == ("d-1", "com.github.push")
    assert (found["source"], found["data"]) == ("https://api.github.com/repos/o/r", PUSHED)


def test_nothing_is_published_on_a_bad_signature_and_the_audit_names_the_intake(
    live_gateway: LiveGateway, rp: str, sender: httpx.Client
) -> None:
    made = create(live_gateway, rp, format="github", secret=SECRET)
    body = json.dumps(PUSHED).encode()
    refused(sender.post(made["url"], content=body + b" ", headers=github(body)), 403, "signature-invalid")
    refused(sender.post(made["url"], content=body, headers=github(body, secret="x" * 20)), 403, "signature-invalid")
    refused(sender.post(made["url"], content=body), 403, "signature-invalid")
    assert events(live_gateway, rp) == []

    def audited() -> bool:
        found = live_gateway.admin.get("/api/v1/audit", params={"limit": 100}).json()["items"]
        return any(made["id"] in json.dumps(entry) and entry["outcome"] == "refused" for entry in found)

    wait_for(audited, 60, about="the refusal is in the audit")


def test_the_address_and_the_secret_are_in_no_log_audit_entry_administrative_event_or_later_answer(
    live_gateway: LiveGateway, rp: str, sender: httpx.Client
) -> None:
    made = create(live_gateway, rp, format="github", secret=SECRET, title="releases")
    token = made["url"].rpartition("/")[2]
    body = json.dumps(PUSHED).encode()
    sender.post(made["url"], content=body, headers=github(body))
    sender.post(made["url"], content=body)
    sender.get(made["url"])
    sender.post(f"{made['url']}x", content=body)
    live_gateway.admin.patch(f"/api/v1/intakes/{made['id']}", json={"secret": "b" * 32})
    admin = live_gateway.admin
    shown = [
        admin.get(path).text
        for path in (
            f"/api/v1/intakes/{made['id']}",
            f"/api/v1/rps/{rp}/intakes",
            f"/api/v1/rps/{rp}.admin/events",
            "/api/v1/audit?limit=100",
            "/api/v1/leases?kind=intake",
        )
    ]
    assert made["id"] in shown[0]
    assert "io.herald.intake.created" in shown[2]
    database = (live_gateway.data_dir / "herald.sqlite3").read_bytes()
    for secret in (token, SECRET, "b" * 32):
        assert not any(secret in text for text in [*shown, live_gateway.log])
        assert secret.encode() not in database


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_another_method_is_refused(live_gateway: LiveGateway, rp: str, sender: httpx.Client, method: str) -> None:
    answer = sender.request(method, create(live_gateway, rp)["url"])
    refused(answer, 405, "method-not-allowed")
    assert answer.headers["allow"] == "POST, OPTIONS"


def test_an_address_that_was_never_given_or_has_ended_is_not_found(
    live_gateway: LiveGateway, rp: str, sender: httpx.Client
) -> None:
    made = create(live_gateway, rp)
    assert sender.post(made["url"], json={}).status_code == 201
    assert live_gateway.admin.delete(f"/api/v1/intakes/{made['id']}").status_code == 204
    wait_for(lambda: sender.post(made["url"], json={}).status_code == 404, 60, about="the gateway learned of the end")
    for token in ("", "hk_", "hk_" + "A" * 43, "..%2fapi", "%00"):
        assert sender.post(f"{live_gateway.url()}/hooks/{token}", json={}).status_code == 404


def test_an_intake_ends_with_its_lease(live_gateway: LiveGateway, rp: str, sender: httpx.Client) -> None:
    made = create(live_gateway, rp, lease_s=1)
    wait_for(lambda: sender.post(made["url"], json={}).status_code == 410, 60, about="the lease ended")


def test_the_policy_applies_to_the_owner_as_it_is_when_a_webhook_comes(
    live_gateway: LiveGateway, sender: httpx.Client
) -> None:
    allow = [{"issuer": "domain", "claims": {"sub": {"equals": "ann"}}, "allow": ["publish", "administer", "describe"]}]
    rp = live_gateway.create_rp(policy=allow)
    refused(live_gateway.http("bob").post(f"/api/v1/rps/{rp}/intakes", json={}), 403, "forbidden")
    with live_gateway.http("ann") as ann:
        made = ann.post(f"/api/v1/rps/{rp}/intakes", json={}).json()
    url = live_gateway.url() + httpx.URL(made["url"]).path
    assert made["owner"] == "ann"
    assert sender.post(url, json={"n": 1}).status_code == 201
    # Without intakes: their principals carry a claim that a policy can test.
    without = [{"issuer": "domain", "claims": {"intake": {"exists": True}}, "allow": []}, *allow]
    assert live_gateway.admin.patch(f"/api/v1/rps/{rp}", json={"policy": without}).status_code == 200
    wait_for(lambda: sender.post(url, json={}).status_code == 403, 60, about="the gateway learned of the policy")


def test_an_intake_of_an_administrator_has_none_of_the_administrators_rights(
    live_gateway: LiveGateway, sender: httpx.Client
) -> None:
    with live_gateway.http("ann") as ann:
        rp = ann.post("/api/v1/rps", json={"policy": []}).json()["id"]
    answer = live_gateway.admin.post(f"/api/v1/rps/{rp}/intakes", json={})
    refused(answer, 403, "forbidden")
    assert ADMIN in answer.json()["detail"]


def test_revoking_the_owner_ends_the_intake(live_gateway: LiveGateway, sender: httpx.Client) -> None:
    with live_gateway.http("eve") as eve:
        rp = eve.post("/api/v1/rps", json={}).json()["id"]
        url = live_gateway.url() + httpx.URL(eve.post(f"/api/v1/rps/{rp}/intakes", json={}).json()["url"]).path
    assert sender.post(url, json={}).status_code == 201
    live_gateway.admin.post("/api/v1/revocations", json={"kind": "subject", "value": "eve"}).raise_for_status()
    wait_for(lambda: sender.post(url, json={}).status_code == 401, 60, about="the revocation is known")


def test_two_secrets_are_valid_during_a_rotation(live_gateway: LiveGateway, rp: str, sender: httpx.Client) -> None:
    made = create(live_gateway, rp, format="github", secret=SECRET)
    new = "the-next-secret-of-the-sender"
    changed = live_gateway.admin.patch(f"/api/v1/intakes/{made['id']}", json={"secret": new})
    assert changed.status_code == 200
    assert changed.json()["previous_until"]
    body = b"{}"

    def status(secret: str) -> int:
        return sender.post(made["url"], content=body, headers=github(body, secret=secret)).status_code

    wait_for(lambda: status(new) == 201, 60, about="the gateway learned of the new secret")
    assert status(SECRET) == 201
    assert status("x" * 20) == 403


def test_a_sender_that_signs_nothing_shows_the_secret(live_gateway: LiveGateway, rp: str, sender: httpx.Client) -> None:
    made = create(live_gateway, rp, format="alertmanager", secret=SECRET)
    body = {"version": "4", "status": "firing", "groupKey": "g", "alerts": []}
    assert sender.post(made["url"], json=body).status_code == 403
    assert sender.post(made["url"], json=body, auth=("prometheus", SECRET)).status_code == 201
    (found,) = events(live_gateway, rp)
    assert (found["type"], found["subject"]) == ("io.prometheus.alertmanager.firing", "g")


def test_cloudevents_are_published_as_they_are_and_the_handshake_is_answered(
    live_gateway: LiveGateway, rp: str, sender: httpx.Client
) -> None:
    made = create(live_gateway, rp, format="cloudevents")
    consent = sender.options(made["url"], headers={"webhook-request-origin": "eventemitter.example.com"})
    assert consent.status_code == 200
    assert consent.headers["webhook-allowed-origin"] == "eventemitter.example.com"
    assert consent.headers["webhook-allowed-rate"] == "*"
    assert sender.post(made["url"], content=json.dumps(event("a")), headers=STRUCTURED).status_code == 201
    batch = json.dumps([event("b"), event("c")])
    assert len(sender.post(made["url"], content=batch, headers=BATCH).json()["results"]) == 2
    assert [one["id"] for one in events(live_gateway, rp)] == ["a", "b", "c"]
    refused(sender.post(made["url"], json={"not": "an event"}, headers=STRUCTURED), 400, "invalid-event")


def test_a_webhook_that_is_too_large_or_malformed_is_refused(
    live_gateway: LiveGateway, rp: str, sender: httpx.Client
) -> None:
    made = create(live_gateway, rp)
    refused(sender.post(made["url"], content=b"x" * (300 * 1024)), 413, "too-large")
    refused(sender.post(made["url"], content=b"x" * (5 * 1024 * 1024)), 413, "too-large")
    refused(sender.post(made["url"], content=b"{", headers={"content-type": "application/json"}), 400, "invalid-event")
    packed = sender.post(made["url"], content=b"x", headers={"content-encoding": "gzip"})
    refused(packed, 415, "unsupported-media-type")
    assert events(live_gateway, rp) == []


def test_each_intake_has_rates_of_its_own_and_guessing_addresses_is_slowed_down(
    new_live_gateway: Callable[..., LiveGateway], sender: httpx.Client
) -> None:
    running = new_live_gateway(requests_per_s=1, failed_tokens_per_s=1, rate_window_s=5)
    rp = running.create_rp()
    urls = [create(running, rp)["url"] for _ in range(2)]
    limited = until_limited(lambda: sender.post(urls[0], json={}), 201)
    assert int(limited.headers["retry-after"]) >= 1
    assert sender.post(urls[1], json={}).status_code == 201
    until_limited(lambda: sender.post(f"{running.url()}/hooks/hk_{'A' * 43}", json={}), 404)


def until_limited(send: Callable[[], httpx.Response], before: int) -> httpx.Response:
    """Send, with the answer `before`, until an answer is 429."""
    for _ in range(1000):
        answer = send()
        if answer.status_code == 429:
            return answer
        assert answer.status_code == before
    pytest.fail("nothing limits it")


@pytest.mark.long
def test_the_last_use_is_shown(live_gateway: LiveGateway, rp: str, sender: httpx.Client) -> None:
    made = create(live_gateway, rp)
    path = f"/api/v1/intakes/{made['id']}"
    assert made["last_used_at"] is None
    assert sender.post(made["url"], json={}).status_code == 201
    wait_for(lambda: live_gateway.admin.get(path).json()["last_used_at"] is not None, 60, about="the use is noted")
    listed = live_gateway.admin.get(f"/api/v1/rps/{rp}/intakes").json()["items"]
    assert [one["last_used_at"] is not None for one in listed if one["id"] == made["id"]] == [True]


@pytest.mark.long
def test_use_renews_the_lease(new_live_gateway: Callable[..., LiveGateway], sender: httpx.Client) -> None:
    running = new_live_gateway()
    rp = running.create_rp()
    began = time.monotonic()
    made = create(running, rp, lease_s=60)
    path = f"/api/v1/intakes/{made['id']}"
    before = made["lease"]["expires_at"]

    def renewed() -> bool:
        assert sender.post(made["url"], json={}).status_code == 201
        return bool(running.admin.get(path).json()["lease"]["expires_at"] > before)

    wait_for(renewed, 40, about="use renewed the lease, from a quarter of it on")
    assert time.monotonic() - began >= 10, "not before a quarter of the lease has passed"
