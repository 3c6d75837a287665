"""POST /api/v1/rps/{rp}/events: the forms of a publish, its answers, and data that stays as it was sent."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest

from tests.gateway.server import BATCH, STRUCTURED, LiveGateway, event, ids_of

# What a JSON library would change when it reads and writes: numbers, escapes, order, white space.
DELICATE = (
    '{"z": 1.10, "a":12345678901234567890,"e":1E400 , "s":"\\u00e9\\/\\ud83d\\ude00\\u2028",'
    '\t"n":-0.0,"dup":[ ], "nested" : {"b":null,"a":[1,  2]}}'
)


@pytest.fixture
def http(live_gateway: LiveGateway) -> Iterator[httpx.Client]:
    with live_gateway.http() as made:
        yield made


def raw_events(live_gateway: LiveGateway, rp: str) -> str:
    """The text of a pull of everything."""
    return live_gateway.admin.get(f"/api/v1/rps/{rp}/events").text


def events(live_gateway: LiveGateway, rp: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = live_gateway.admin.get(f"/api/v1/rps/{rp}/events").json()["events"]
    return found


def test_a_structured_event_is_answered_with_its_place(live_gateway: LiveGateway, rp: str, http: httpx.Client) -> None:
    answer = http.post(f"/api/v1/rps/{rp}/events", content=json.dumps(event("a")), headers=STRUCTURED)
    assert answer.status_code == 201
    assert answer.headers["content-type"] == "application/json"
    document = answer.json()
    epoch = live_gateway.admin.get(f"/api/v1/rps/{rp}").json()["epoch"]
    assert document == {
        "epoch": epoch,
        "offset": 1,
        "cursor": f"{epoch}:1",
        "id": "a",
        "source": "/tests",
        "duplicate": False,
    }


def test_a_structured_event_is_kept_byte_for_byte(live_gateway: LiveGateway, rp: str, http: httpx.Client) -> None:
    body = f' {{"data" : {DELICATE} ,"type":"t","x":"\\u0041","source":"/s","id":"1","specversion":"1.0"}}\n'
    assert http.post(f"/api/v1/rps/{rp}/events", content=body, headers=STRUCTURED).status_code == 201
    assert raw_events(live_gateway, rp).startswith('{"events":[' + body.strip() + "],")


def test_a_binary_event_has_its_attributes_in_headers_and_its_data_untouched(
    live_gateway: LiveGateway, rp: str, http: httpx.Client
) -> None:
    headers = {
        "ce-specversion": "1.0",
        "ce-id": "b1",
        "ce-source": "/s%20x",
        "ce-type": "t",
        "ce-subject": "caf%C3%A9",
        "ce-traceparent": "00-1",
        "content-type": "application/vnd.x+json",
    }
    answer = http.post(f"/api/v1/rps/{rp}/events", content=DELICATE, headers=headers)
    assert answer.status_code == 400, "a source with a space is no URI-reference"
    answer = http.post(f"/api/v1/rps/{rp}/events", content=DELICATE, headers={**headers, "ce-source": "/s"})
    assert answer.status_code == 201, answer.text
    assert f'"data":{DELICATE}' in raw_events(live_gateway, rp)
    (stored,) = events(live_gateway, rp)
    assert stored["subject"] == "caf\u00e9"
    assert stored["traceparent"] == "00-1"
    assert stored["datacontenttype"] == "application/vnd.x+json"


@pytest.mark.parametrize(
    ("content_type", "body", "member", "value"),
    [
        ("application/json", DELICATE.encode(), "data", None),
        ("text/plain", 'h\u00e9llo\n\t"w"'.encode(), "data", 'h\u00e9llo\n\t"w"'),
        ("text/csv; charset=utf-8", b"a,b\r\n1,2\r\n", "data", "a,b\r\n1,2\r\n"),
        ("text/plain", b"\xff\xfe", "data_base64", base64.b64encode(b"\xff\xfe").decode()),
        ("application/octet-stream", bytes(range(256)), "data_base64", base64.b64encode(bytes(range(256))).decode()),
        ("image/png", b"\x89PNG", "data_base64", base64.b64encode(b"\x89PNG").decode()),
        (None, b'{"n":1.10}', "data", {"n": 1.1}),
    ],
)
def test_anything_else_is_wrapped_with_an_id_and_time_of_its_own(
    live_gateway: LiveGateway,
    rp: str,
    http: httpx.Client,
    content_type: str | None,
    body: bytes,
    member: str,
    value: object,
) -> None:
    headers = {} if content_type is None else {"content-type": content_type}
    answers = [http.post(f"/api/v1/rps/{rp}/events", content=body, headers=headers) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201], answers[0].text
    first, second = events(live_gateway, rp)
    assert first["id"] != second["id"]
    assert first["id"] == answers[0].json()["id"]
    assert str(first["time"]).endswith("Z")
    assert first["source"] == "/localhost/principals/tester"
    assert first.get("datacontenttype") == content_type
    if value is None:
        assert f'"{member}":{body.decode()}' in raw_events(live_gateway, rp)
    else:
        assert first[member] == value


@pytest.mark.parametrize("mode", ["wrapped", "binary"])
@pytest.mark.parametrize("size", [10, 100_000])
def test_a_body_that_is_declared_to_be_json_and_is_none_is_refused_and_nothing_is_stored(
    live_gateway: LiveGateway, rp: str, http: httpx.Client, mode: str, size: int
) -> None:
    """By the short way, and by the ordinary one, which larger bodies go."""
    headers = {"content-type": "application/vnd.x+json"}
    if mode == "binary":
        headers |= {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s", "ce-type": "t"}
    for _ in range(2):
        answer = http.post(f"/api/v1/rps/{rp}/events", content=b'{\n "a":"' + b"x" * size + b'",\n}', headers=headers)
        problem = answer.json()
        assert (answer.status_code, problem["type"]) == (400, "urn:herald:problem:invalid-event")
        assert (problem["line"], problem["column"]) == (3, 1)
        assert "application/vnd.x+json" in problem["detail"]
        assert "line 3, column 1" in problem["detail"]
    assert events(live_gateway, rp) == []


@pytest.mark.parametrize("subject", ["Ann Smith", "j\u00f6rg", "a/b?c&d", "100%", "[x]", '"quoted"'])
def test_whoever_publishes_plain_text_has_a_source_whatever_the_name(
    live_gateway: LiveGateway, rp: str, subject: str
) -> None:
    with live_gateway.http(subject) as http:
        answer = http.post(f"/api/v1/rps/{rp}/events", content="hi", headers={"content-type": "text/plain"})
    assert answer.status_code == 201, answer.text
    assert answer.json()["source"] == f"/localhost/principals/{quote(subject, safe='')}"


def test_a_batch_is_answered_for_each_event(live_gateway: LiveGateway, rp: str, http: httpx.Client) -> None:
    http.post(f"/api/v1/rps/{rp}/events", content=json.dumps(event("b")), headers=STRUCTURED)
    batch = [event("a"), event("b"), event("c"), event("a")]
    answer = http.post(f"/api/v1/rps/{rp}/events", content=json.dumps(batch), headers=BATCH)
    assert answer.status_code == 201
    document = answer.json()
    assert document["results"] == [
        {"offset": 2, "duplicate": False},
        {"offset": 1, "duplicate": True},
        {"offset": 3, "duplicate": False},
        {"offset": 2, "duplicate": True},
    ]
    assert document["cursor"] == f"{document['epoch']}:{document['offset']}"
    assert ids_of(events(live_gateway, rp)) == ["b", "a", "c"]


def test_the_bytes_of_each_event_of_a_batch_are_kept(live_gateway: LiveGateway, rp: str, http: httpx.Client) -> None:
    one = '{"specversion":"1.0","id":"%d","source":"/s","type":"t","data":' + DELICATE + " }"
    batch = "[ " + one % 1 + " ,\n" + one % 2 + "]"
    assert http.post(f"/api/v1/rps/{rp}/events", content=batch, headers=BATCH).status_code == 201
    assert raw_events(live_gateway, rp).startswith('{"events":[' + one % 1 + "," + one % 2 + "],")


def test_a_repeated_event_is_answered_as_the_first_time_and_said_to_be_one(
    live_gateway: LiveGateway, rp: str, http: httpx.Client
) -> None:
    answers = [
        http.post(f"/api/v1/rps/{rp}/events", content=json.dumps(event("a", number)), headers=STRUCTURED).json()
        for number in range(2)
    ]
    assert answers[1] == {**answers[0], "duplicate": True}
    assert [one["data"] for one in events(live_gateway, rp)] == [0]


@pytest.mark.parametrize(
    "batch",
    [
        [event("a"), {"specversion": "1.0", "id": "b", "source": "/s"}],
        [event("a"), 7],
        [event("a"), {**event("b"), "UPPER": 1}],
        [],
        {"not": "a list"},
    ],
)
def test_a_batch_is_taken_whole_or_refused_whole(
    live_gateway: LiveGateway, rp: str, http: httpx.Client, batch: object
) -> None:
    answer = http.post(f"/api/v1/rps/{rp}/events", content=json.dumps(batch), headers=BATCH)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "urn:herald:problem:invalid-event"
    assert events(live_gateway, rp) == []


def test_an_event_may_be_as_large_as_the_domain_allows_and_no_larger(
    live_gateway: LiveGateway, rp: str, http: httpx.Client
) -> None:
    empty = json.dumps(event("", ""), separators=(",", ":"))
    room = live_gateway.config.event_bytes_max - len(empty) - 1
    largest = json.dumps(event("a", "x" * room), separators=(",", ":"))
    assert len(largest) == live_gateway.config.event_bytes_max
    assert http.post(f"/api/v1/rps/{rp}/events", content=largest, headers=STRUCTURED).status_code == 201
    larger = json.dumps(event("b", "x" * (room + 1)), separators=(",", ":"))
    answer = http.post(f"/api/v1/rps/{rp}/events", content=larger, headers=STRUCTURED)
    assert (answer.status_code, answer.json()["type"]) == (413, "urn:herald:problem:too-large")
    assert ids_of(events(live_gateway, rp)) == ["a"]


def test_a_batch_holds_as_many_events_as_the_domain_allows_and_no_more(
    live_gateway: LiveGateway, rp: str, http: httpx.Client
) -> None:
    batch = [event(str(number)) for number in range(live_gateway.config.batch_events_max)]
    answer = http.post(f"/api/v1/rps/{rp}/events", content=json.dumps(batch), headers=BATCH)
    assert (answer.status_code, answer.json()["offset"]) == (201, len(batch))
    answer = http.post(f"/api/v1/rps/{rp}/events", content=json.dumps([*batch, event("more")]), headers=BATCH)
    assert (answer.status_code, answer.json()["type"]) == (413, "urn:herald:problem:too-large")


def test_a_published_event_is_at_once_in_a_pull(live_gateway: LiveGateway, rp: str, http: httpx.Client) -> None:
    for number in range(20):
        http.post(f"/api/v1/rps/{rp}/events", content=json.dumps(event(str(number))), headers=STRUCTURED)
        assert len(events(live_gateway, rp)) == number + 1


def test_many_publishers_on_many_connections_all_get_their_places(live_gateway: LiveGateway, rp: str) -> None:
    with live_gateway.http() as one, live_gateway.http() as two:
        offsets = []
        for number in range(30):
            for http, name in ((one, "one"), (two, "two")):
                answer = http.post(
                    f"/api/v1/rps/{rp}/events", content=json.dumps(event(f"{name}-{number}")), headers=STRUCTURED
                )
                offsets.append(answer.json()["offset"])
    assert offsets == list(range(1, 61))


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_are_refused_with_those_that_are_offered(live_gateway: LiveGateway, rp: str, method: str) -> None:
    answer = live_gateway.admin.request(method, f"/api/v1/rps/{rp}/events")
    assert (answer.status_code, answer.json()["type"]) == (405, "urn:herald:problem:method-not-allowed")
    assert set(answer.headers["allow"].split(", ")) == {"GET", "POST"}


def test_an_unknown_rp_is_not_found(live_gateway: LiveGateway, http: httpx.Client) -> None:
    for reference in ("a" * 26, "%2Flocalhost%2Fno%2Fsuch%2F"):
        answer = http.post(f"/api/v1/rps/{reference}/events", content="{}")
        assert (answer.status_code, answer.json()["type"]) == (404, "urn:herald:problem:not-found")
