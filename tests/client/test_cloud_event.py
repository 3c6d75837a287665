"""Events as programs read them: a dict with attributes, and the bridge to the CloudEvents SDK."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from cloudevents.core.v1.event import CloudEvent
from herald import Event, Received, event
from herald.events import as_event, event_data

WHOLE: dict[str, Any] = {
    "specversion": "1.0",
    "id": "42",
    "source": "/sensors/roof",
    "type": "org.example.temperature",
    "subject": "roof",
    "time": "2026-11-20T18:40:12.710331Z",
    "datacontenttype": "application/json",
    "priority": 3,
    "data": {"celsius": 21.5},
}


def test_an_event_is_the_dict_that_it_was_and_has_attributes() -> None:
    item = Received(Event(WHOLE), "r", "e", 1, "e:1")
    assert item.event == WHOLE
    assert isinstance(item.event, dict)
    assert json.loads(json.dumps(item.event)) == WHOLE
    assert item.event["priority"] == 3
    assert dict(**item.event) == WHOLE
    assert (item.event.id, item.event.source, item.event.type) == ("42", "/sensors/roof", "org.example.temperature")
    assert (item.id, item.source, item.type, item.data) == (
        "42",
        "/sensors/roof",
        "org.example.temperature",
        WHOLE["data"],
    )
    assert item.event.subject == "roof"
    assert item.event.time == datetime(2026, 11, 20, 18, 40, 12, 710331, tzinfo=UTC)
    assert item.event.extensions == {"priority": 3}
    assert (item.event.datacontenttype, item.event.dataschema) == ("application/json", None)


@pytest.mark.parametrize("time", [None, 5, "yesterday", ""])
def test_an_event_of_anybody_can_be_read(time: Any) -> None:
    found = Event(time=time, id=7)
    assert (found.id, found.source, found.type, found.subject, found.time) == ("7", "", "", None, None)
    assert found.data is None
    assert Event(data_base64="AAE=").data == b"\x00\x01"
    assert Event(data_base64="no base64").data == "no base64"
    assert event_data({"data": [1]}) == [1]


def test_an_event_becomes_one_of_the_sdk_and_comes_back() -> None:
    made = Event(WHOLE).to_sdk()
    assert isinstance(made, CloudEvent)
    assert (made.get_id(), made.get_extension("priority"), made.get_data()) == ("42", 3, {"celsius": 21.5})
    assert made.get_time() == Event(WHOLE).time
    assert Event.from_sdk(made) == WHOLE
    binary = event(b"\x00\x01", source="/s")
    assert Event.from_sdk(binary.to_sdk()) == binary


def test_what_the_sdk_read_from_a_binary_request_is_json_where_it_is_declared() -> None:
    attributes = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "datacontenttype": "application/json"}
    assert Event.from_sdk(CloudEvent(attributes, b'{"a": 1}'))["data"] == {"a": 1}
    assert Event.from_sdk(CloudEvent(attributes, b"{")).data == b"{"


def test_an_event_of_the_sdk_is_published_as_it_is_and_nothing_else_is_taken_for_one() -> None:
    moment = datetime(2026, 11, 20, 18, 40, tzinfo=UTC)
    given = CloudEvent({"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "time": moment}, "text")
    stated = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "time": "2026-11-20T18:40:00.000Z"}
    assert as_event(given) == {**stated, "data": "text"}
    with pytest.raises(ValueError, match="cannot be given in addition"):
        as_event(given, type="other")
    with pytest.raises(TypeError):
        Event.from_sdk({"specversion": "1.0"})
    assert as_event({"get_data": 1})["data"] == {"get_data": 1}
