"""The pure rules of push: schedule, verdicts, states of an endpoint, the window of a subscription, addresses."""

from __future__ import annotations

from email.utils import formatdate
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.core.errors import InvalidRequest
from eventing.subscriptions.push.rules.addresses import endpoint_url, may_call, ports_parse
from eventing.subscriptions.push.rules.delivery_window import DeliveryWindow, Part
from eventing.subscriptions.push.rules.endpoint_states import (
    FOLLOWING,
    EndpointStanding,
    EndpointState,
    after_verdict,
    paused,
    resumed,
)
from eventing.subscriptions.push.rules.options import webhook_options
from eventing.subscriptions.push.rules.retries import (
    RETRY_AFTER_S_MAX,
    STANDARD,
    RetrySchedule,
    retry_after_s,
    schedule_parse,
)
from eventing.subscriptions.push.rules.verdicts import AttemptVerdict, PushAnswer, judged

NOW = 1_800_000_000.0


def test_the_standard_schedule_has_ten_attempts_within_75_hours_and_35_minutes() -> None:
    assert len(STANDARD.pauses_s) + 1 == 10
    assert STANDARD.whole_s == 75 * 3600 + 35 * 60 + 5


@given(st.integers(1, 12), st.floats(0, 1), st.none() | st.floats(1, RETRY_AFTER_S_MAX))
def test_a_pause_is_near_its_schedule_and_never_shorter_than_asked(failures: int, jitter: float, asked: float) -> None:
    pause = STANDARD.pause_s(failures, jitter, asked)
    if failures > len(STANDARD.pauses_s):
        assert pause is None
        return
    assert pause is not None
    stated = STANDARD.pauses_s[failures - 1]
    assert pause >= 0.9 * stated - 1e-6
    assert pause <= max(1.1 * stated, asked or 0) + 1e-6
    assert asked is None or pause >= asked


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        ("0", 1.0),
        ("999999999999", RETRY_AFTER_S_MAX),
        ("-5", None),
        ("soon", None),
        ("", None),
        (formatdate(NOW + 90, usegmt=True), 90.0),
        (formatdate(NOW - 90, usegmt=True), 1.0),
        ("Mon, 99 Xxx 2026 99:99:99 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_clamped(value: str, seconds: float | None) -> None:
    assert retry_after_s(value, NOW) == seconds


@pytest.mark.parametrize("text", ["5,x", "-1", "0", ",".join(["1"] * 21), "9999999"])
def test_a_schedule_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        schedule_parse(text)


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (200, "delivered"), (204, "delivered"), (299, "delivered"), (301, "failed"), (307, "failed"), (400, "failed"),
        (404, "failed"), (410, "gone"), (429, "throttled"), (500, "failed"), (502, "throttled"), (503, "failed"),
        (504, "throttled"), (0, "failed"),
    ],
)  # fmt: skip
def test_verdicts_are_those_of_standard_webhooks(status: int, verdict: str) -> None:
    assert judged(PushAnswer(status)).value == verdict


@given(st.lists(st.tuples(st.sampled_from(list(AttemptVerdict)), st.floats(0, 1))), st.booleans())
def test_an_endpoint_only_takes_steps_of_the_graph(steps: list[tuple[AttemptVerdict, float]], verified: bool) -> None:
    schedule = RetrySchedule((1, 2, 3))
    standing = EndpointStanding(EndpointState.ACTIVE if verified else EndpointState.UNVERIFIED, verified=verified)
    now = NOW
    for verdict, jitter in steps:
        if standing.state in (EndpointState.PAUSED, EndpointState.GONE):
            break
        after = after_verdict(standing, verdict, "x", schedule, now=now, jitter=jitter)
        assert after.state == standing.state or after.state in FOLLOWING[standing.state]
        assert after.failures <= len(schedule.pauses_s) + 1
        assert (after.failures == 0) == (after.failing_since is None)
        if after.state in (EndpointState.FAILING, EndpointState.THROTTLED):
            assert after.next_at > now
        now += 10
        standing = after


def test_a_resumed_endpoint_is_asked_for_its_consent_unless_it_gave_it() -> None:
    assert resumed(paused(EndpointStanding(EndpointState.FAILING, 3, NOW, verified=True), "x")).state == "active"
    assert resumed(paused(EndpointStanding(), "x")).state == "unverified"
    gone = EndpointStanding(EndpointState.GONE)
    assert resumed(gone) == gone == paused(gone, "x")


@given(st.data())
def test_a_window_settles_every_offset_once_and_acknowledges_a_prefix(data: st.DataObject) -> None:
    """Whatever fails, is cut short or comes back out of order: what is acknowledged was settled, and all is settled at last."""
    in_flight, batch, end = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3)), data.draw(st.integers(1, 30))
    window, flying = DeliveryWindow(0, in_flight), list[Part]()
    settled: list[int] = []
    for _ in range(2000):
        part = window.wanted(end, batch)
        if part is not None and (not flying or data.draw(st.booleans())):
            window.take(part)
            if part[1] > part[0] and data.draw(st.booleans()):
                part = window.shorten(part, part[0])
            flying.append(part)
        elif flying:
            part = flying.pop(data.draw(st.integers(0, len(flying) - 1)))
            if data.draw(st.integers(0, 3)) == 0:
                window.give_back(part)
            else:
                settled += range(part[0], part[1] + 1)
                window.settle(part)
        else:
            break
        assert len(flying) == window.in_flight <= in_flight
        assert set(range(1, window.acknowledged + 1)) <= set(settled)
        if in_flight == 1:
            assert settled == sorted(settled)
    else:
        return  # drawn failures without end
    assert sorted(settled) == list(range(1, end))
    assert window.acknowledged == end - 1


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
        "255.255.255.255", "240.0.0.1", "::1", "::", "fe80::1", "fc00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
        "2002:7f00:1::", "64:ff9b::7f00:1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "198.18.0.1", "192.0.2.1",
    ],
)  # fmt: skip
def test_an_address_that_is_not_public_may_not_be_called(address: str) -> None:
    assert not may_call(ip_address(address), private=False)


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "0.0.0.0", "224.0.0.1"])
def test_metadata_services_may_not_be_called_even_where_private_networks_may(address: str) -> None:
    assert not may_call(ip_address(address), private=True)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"])
def test_a_public_address_may_be_called(address: str) -> None:
    assert may_call(ip_address(address), private=False)


def test_a_shown_url_has_no_query() -> None:
    url = endpoint_url("https://Example.org:8443/hook?token=abc", ports=ports_parse("443,8000-8999"), private=False)
    assert (url.host, url.port, url.target, url.host_field) == (
        "example.org",
        8443,
        "/hook?token=abc",
        "example.org:8443",
    )
    assert "abc" not in url.shown


@pytest.mark.parametrize(
    "deliver",
    [
        {},
        {"url": "https://example.org/", "secret": "whsec_short"},
        {"url": "https://example.org/", "secret": "whsec_" + "A" * 20},
        {"url": "https://example.org/", "signature": "v1"},
        {"url": "https://example.org/", "in_flight": 2},
        {"url": "https://example.org/", "batch": 2},
        {"url": "https://example.org/", "format": "xml"},
        {"url": "https://example.org/", "headers": {"Host": "x"}},
        {"url": "https://example.org/", "headers": {"webhook-id": "x"}},
        {"url": "https://example.org/", "headers": {"X": "a\r\nY: b"}},
        {"url": "https://example.org/", "headers": {"X": "a", "x": "b"}},
        {"url": "https://example.org/", "headers": {f"X-{n}": "a" for n in range(17)}},
        {"url": "https://example.org/" + "a" * 3000},
        {"url": "https://example.org/a b"},
        {"url": "https://example.org/\r\nX: y"},
        {"url": "https://example.org/", "max_attempts": 11},
        {"url": "https://example.org/", "extra": 1},
    ],
)
def test_options_that_are_none_are_refused(deliver: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest):
        webhook_options({"mode": "webhook", **deliver}, ports=ports_parse("443"), private=False)


def test_shown_options_have_no_secrets() -> None:
    secret = "whsec_" + "A" * 40
    stated = {
        "mode": "webhook",
        "url": "https://example.org/a?key=hidden",
        "secret": secret,
        "headers": {"Authorization": "Bearer hidden"},
    }
    options = webhook_options(stated, ports=ports_parse("443"), private=False)
    assert "hidden" not in str(options.shown)
    assert secret not in str(options.shown)
    assert options.shown["headers"] == ["Authorization"]
