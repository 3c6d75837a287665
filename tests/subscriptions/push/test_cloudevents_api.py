"""The CloudEvents Subscriptions API as its clients see it: an object is created, read, written back, listed and ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from eventing.subscriptions.push.models import PushEndpoint
from eventing.subscriptions.push.services.vault import EndpointSecrets, unseal
from tests.planes import problem_code
from tests.subscriptions.push.certificates import certificate_made

pytestmark = pytest.mark.usefixtures("stores")

ClientOf = Callable[..., APIClient]
PATH = "/api/v1/cloudevents/subscriptions"
SINK = "https://app.example.org/in?key=hidden"
SECRET = "whsec_" + "A" * 40
PLAIN = {"credentialtype": "PLAIN", "identifier": "ben", "secret": "hidden"}


@pytest.fixture
def rp(api: APIClient) -> str:
    """An RP of ann."""
    made: str = api.post("/api/v1/rps", {"name": "a/b"}, format="json").json()["id"]
    return made


def create(client: APIClient, rp: str, **stated: Any) -> Any:
    return client.post(PATH, {"sink": SINK, "protocol": "HTTP", "config": {"rp": rp}, **stated}, format="json")


def created(client: APIClient, rp: str, **stated: Any) -> dict[str, Any]:
    response = create(client, rp, **stated)
    assert response.status_code == 201, response.content
    made: dict[str, Any] = response.json()
    return made


def held(subscription_id: str) -> EndpointSecrets:
    return unseal(subscription_id, bytes(PushEndpoint.objects.get(pk=subscription_id).sealed))


def test_creation_answers_the_whole_object_with_defaults_and_lease(client_of: ClientOf, rp: str) -> None:
    ben = client_of("ben")
    response = create(ben, "a/b/", id="ignored", lease_s=60, filters=[], types=[])
    made = response.json()
    assert response.status_code == 201, made
    assert response["Location"] == f"{PATH}/{made['id']}"
    assert made["id"].startswith("sub_")
    assert (made["sink"], made["protocol"]) == ("https://app.example.org/in?…", "HTTP")
    assert (made["config"], made["lease"]["granted_s"]) == ({"rp": rp}, 60)
    settings = made["protocolsettings"]
    assert (settings["method"], settings["format"], settings["signature"]) == ("POST", "structured", "v1a")
    assert ben.get(f"{PATH}/{made['id']}").json() == made
    deliver = ben.get(f"/api/v1/subscriptions/{made['id']}").json()["deliver"]
    assert deliver["mode"] == "cloudevents-http"


@pytest.mark.parametrize(
    "wrong",
    [
        {"filters": [{"exact": {"type": "a"}}]},
        {"types": ["a"]},
        {"source": "/s"},
        {"protocol": "http"},
        {"protocol": "KAFKA"},
        {"protocolsettings": {"method": "PUT"}},
        {"protocolsettings": {"format": "raw"}},
        {"protocolsettings": {"headers": {"ce-id": "1"}}},
        {"sinkcredential": {"credentialtype": "REFRESHTOKEN"}},
        {"sinkcredential": {"credentialtype": "PLAIN", "identifier": "ben"}},
        {"sink": "https://10.0.0.1/"},
        {"config": {}},
        {"unknown": 1},
    ],
)
def test_what_is_not_supported_is_refused_and_nothing_made(client_of: ClientOf, rp: str, wrong: dict[str, Any]) -> None:
    response = create(client_of("ben"), rp, **wrong)
    assert response.status_code == 400, response.content
    assert problem_code(response) in ("invalid-request", "invalid-body")
    assert not PushEndpoint.objects.exists()


def test_no_secret_is_shown(client_of: ClientOf, rp: str) -> None:
    ben = client_of("ben")
    certificate, key = certificate_made()
    settings = {
        "headers": {"X-Key": "hidden"}, "secret": SECRET, "client_certificate": certificate, "client_key": key,
        "warn_url": "https://warn.example.org/?k=hidden",
    }  # fmt: skip
    made = created(ben, rp, sinkcredential=PLAIN, protocolsettings=settings)
    shown = ben.get(f"{PATH}/{made['id']}").content.decode() + ben.get(PATH).content.decode()
    for hidden in ("hidden", SECRET, "PRIVATE", "BEGIN"):
        assert hidden not in shown
    assert made["sinkcredential"] == {"credentialtype": "PLAIN", "identifier": "ben"}
    assert held(made["id"]).credential is not None


def test_an_object_is_written_back_as_it_was_read_without_losing_a_secret(client_of: ClientOf, rp: str) -> None:
    ben = client_of("ben")
    certificate, key = certificate_made()
    settings = {
        "headers": {"X-Key": "hidden"}, "secret": SECRET, "client_certificate": certificate, "client_key": key, "rate": 60,
    }  # fmt: skip
    made = created(ben, rp, sinkcredential=PLAIN, protocolsettings=settings)
    before = held(made["id"])
    response = ben.put(f"{PATH}/{made['id']}", made, format="json")
    assert response.status_code == 200, response.content
    assert held(made["id"]) == before
    assert response.json()["protocolsettings"] == made["protocolsettings"]


def test_an_update_replaces_the_object_as_a_whole(client_of: ClientOf, rp: str) -> None:
    ben = client_of("ben")
    made = created(ben, rp, lease_s=60, sinkcredential=PLAIN, protocolsettings={"format": "binary", "secret": SECRET})
    body = {"sink": SINK, "protocol": "HTTP", "config": {"rp": rp}, "lease_s": 600}
    changed = ben.put(f"{PATH}/{made['id']}", body, format="json", headers={"If-Match": '"1"'}).json()
    assert changed["protocolsettings"]["format"] == "structured"
    assert changed["protocolsettings"]["signature"] == "v1a"
    assert "sinkcredential" not in changed
    assert changed["lease"]["granted_s"] == 600
    assert (held(made["id"]).secrets, held(made["id"]).credential) == ((), None)
    stale = ben.put(f"{PATH}/{made['id']}", body, format="json", headers={"If-Match": '"1"'})
    assert stale.status_code == 412
    other = ben.put(f"{PATH}/{made['id']}", {**body, "config": {"rp": f"{rp}.admin"}}, format="json")
    assert other.status_code == 400


def test_a_list_is_an_array_of_ones_own_with_a_link_to_the_next_page(client_of: ClientOf, rp: str) -> None:
    ben, eve = client_of("ben"), client_of("eve")
    ids = sorted(created(ben, rp)["id"] for _ in range(3))
    created(eve, rp)
    first = ben.get(PATH, {"limit": "2"})
    assert [one["id"] for one in first.json()] == ids[:2]
    url = first["Link"].partition("<")[2].partition(">")[0]
    second = ben.get(url)
    assert [one["id"] for one in second.json()] == ids[2:]
    assert "Link" not in second


def test_deletion_answers_what_was_and_others_may_not(client_of: ClientOf, api: APIClient, rp: str) -> None:
    ben = client_of("ben")
    made = created(ben, rp)
    assert client_of("eve").delete(f"{PATH}/{made['id']}").status_code == 403
    response = ben.delete(f"{PATH}/{made['id']}")
    assert (response.status_code, response.json()["id"]) == (200, made["id"])
    assert ben.get(f"{PATH}/{made['id']}").status_code == 404


def test_a_subscription_with_another_mode_is_none_of_this_interface(client_of: ClientOf, rp: str) -> None:
    ben = client_of("ben")
    pulled = ben.post(f"/api/v1/rps/{rp}/subscriptions", {}, format="json").json()["id"]
    assert ben.get(f"{PATH}/{pulled}").status_code == 404
    assert ben.get(PATH).json() == []


def test_options_states_methods_and_features(client_of: ClientOf, rp: str) -> None:
    ben = client_of("ben")
    found = ben.options(PATH)
    assert found.status_code == 200
    assert {"GET", "POST", "OPTIONS"} <= set(found["Allow"].split(", "))
    assert (found.json()["protocols"], found.json()["filters"]) == (["HTTP"], [])
    one = ben.options(f"{PATH}/{created(ben, rp)['id']}")
    assert {"GET", "PUT", "DELETE", "OPTIONS"} <= set(one["Allow"].split(", "))
    assert "POST" not in one["Allow"]


def test_a_repeated_creation_with_its_key_makes_one(client_of: ClientOf, rp: str) -> None:
    ben = client_of("ben")
    body = {"sink": SINK, "protocol": "HTTP", "config": {"rp": rp}}
    made = [ben.post(PATH, body, format="json", headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert made[0].json() == made[1].json()
    assert len(ben.get(PATH).json()) == 1
