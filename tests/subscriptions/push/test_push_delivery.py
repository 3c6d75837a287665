"""Push by whole domains to real endpoints: events arrive in order, signed, once verified; bad endpoints cost only themselves."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from click.testing import CliRunner
from herald.commands import cli
from herald.sync import Client
from standardwebhooks import Webhook

from demo.harness.servers import Domain, wait_for
from tests.subscriptions.push.owner import SECRET, Owner
from tests.subscriptions.push.receiver import Receiver

pytestmark = pytest.mark.processes


def test_events_arrive_in_order_once_the_endpoint_has_consented(owner: Owner, receiver: Receiver) -> None:
    hook = owner.hook(receiver.url("/ok"), secret=SECRET)
    owner.publish(*range(50))
    wait_for(lambda: len(receiver.data("/ok")) >= 50, about="all arrive")
    assert receiver.data("/ok") == list(range(50))
    assert receiver.received[0].method == "POST"
    assert b"webhook.challenge" in receiver.received[0].body
    wait_for(lambda: owner.endpoint(hook)["lag"] == 0, about="all is acknowledged")
    owner.wait_state(hook, "active")  # stored apart from the positions, as the attempts are
    wait_for(lambda: len(owner.attempts(hook)) > 1, about="attempts are listed")
    assert {one["verdict"] for one in owner.attempts(hook)} == {"delivered"}


def test_nothing_is_sent_to_an_endpoint_that_does_not_repeat_the_challenge(owner: Owner, receiver: Receiver) -> None:
    hook = owner.hook(receiver.url("/mute"))
    owner.publish(1, 2, 3)
    wait_for(lambda: owner.attempts(hook), about="it was asked")
    assert [one["what"] for one in owner.attempts(hook)] == ["consent"]
    wait_for(lambda: owner.endpoint(hook)["reason"] == "no-consent", about="the standing is stored")
    assert owner.endpoint(hook)["state"] == "unverified"
    assert receiver.requests("/mute") == []


def test_a_failing_endpoint_gets_everything_in_order_when_it_is_back(owner: Owner, receiver: Receiver) -> None:
    hook = owner.hook(receiver.url("/down"))
    owner.publish(0)
    wait_for(lambda: receiver.data("/down") == [0], about="the first arrives")
    receiver.answer["/down"] = 503
    owner.publish(1, 2, 3)
    owner.wait_state(hook, "failing")
    receiver.answer["/down"] = 204
    wait_for(lambda: receiver.data("/down")[-1] == 3, about="the last arrives")
    data = receiver.data("/down")
    assert data == sorted(data)
    assert set(data) == {0, 1, 2, 3}
    owner.wait_state(hook, "active")


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        (302, "http-302"),
        (b"nonsense\r\n\r\n", "malformed-answer"),
        ("endless-head", "malformed-answer"),
        (b"", "connection-closed"),
    ],
)
def test_a_bad_answer_is_a_failure_with_its_reason(owner: Owner, receiver: Receiver, how: Any, reason: str) -> None:
    receiver.answer["/bad"] = how
    hook = owner.hook(receiver.url("/bad"))
    owner.publish(1)
    owner.wait_state(hook, "failing")
    assert owner.endpoint(hook)["reason"] == reason


@pytest.mark.parametrize("how", [pytest.param("hang-body", marks=pytest.mark.long), "huge", "reset-after-200"])
def test_a_success_is_one_whatever_becomes_of_its_body(owner: Owner, receiver: Receiver, how: str) -> None:
    receiver.answer["/odd"] = how
    hook = owner.hook(receiver.url("/odd"))
    owner.publish(1, 2)
    wait_for(lambda: receiver.data("/odd") == [1, 2], about="both arrive")
    wait_for(lambda: owner.endpoint(hook)["lag"] == 0, about="both are acknowledged")


def test_410_ends_an_endpoint(owner: Owner, receiver: Receiver) -> None:
    receiver.answer["/gone"] = 410
    hook = owner.hook(receiver.url("/gone"))
    owner.publish(1)
    owner.wait_state(hook, "gone")
    owner.publish(2)
    answer = owner.http.post(f"/api/v1/subscriptions/{hook}/endpoint/resume")
    assert answer.status_code == 409
    assert receiver.data("/gone") == [1]


def test_an_owner_is_warned_by_a_signed_request_once_that_address_consents(owner: Owner, receiver: Receiver) -> None:
    receiver.answer["/ended"] = 410
    hook = owner.hook(receiver.url("/ended"), secret=SECRET, warn_url=receiver.url("/warn"), headers={"X-Key": "k"})
    silent = owner.hook(receiver.url("/ended"), warn_url=receiver.url("/mute"))
    owner.publish(1)
    wait_for(lambda: receiver.requests("/warn"), about="the warning arrives")
    (warning,) = receiver.requests("/warn")
    event = Webhook(SECRET).verify(warning.body, warning.headers)
    assert (event["type"], event["data"]["subscription"]) == ("io.herald.webhook.warning", hook)
    assert (event["data"]["state"], event["data"]["reason"]) == ("gone", "http-410")
    assert "x-key" not in warning.headers, "custom headers are the endpoint's"
    wait_for(lambda: "warning" in [one["what"] for one in owner.attempts(silent)], about="the other one was asked")
    assert receiver.requests("/mute") == [], "an address that does not consent gets no warning"


@pytest.mark.long
def test_an_exhausted_schedule_pauses_and_resuming_loses_nothing(owner: Owner, receiver: Receiver) -> None:
    receiver.answer["/days"] = 500
    hook = owner.hook(receiver.url("/days"))
    owner.publish(1, 2)
    owner.wait_state(hook, "paused")
    assert owner.endpoint(hook)["reason"] == "schedule-exhausted: http-500"
    receiver.answer["/days"] = 204
    owner.does(hook, "endpoint/resume")
    wait_for(lambda: receiver.data("/days")[-2:] == [1, 2], about="both arrive")


def test_a_dead_letter_is_listed_and_replayed(owner: Owner, receiver: Receiver) -> None:
    receiver.answer["/dead"] = 400
    hook = owner.hook(receiver.url("/dead"), max_attempts=2)
    owner.publish(1)
    wait_for(lambda: owner.dead_letters(hook), about="a dead letter")
    (letter,) = owner.dead_letters(hook)
    assert (letter["first"], letter["last"], letter["reason"], letter["attempts"]) == (1, 1, "http-400", 2)
    receiver.answer["/dead"] = 204
    owner.publish(2)
    wait_for(lambda: 2 in receiver.data("/dead"), about="the next event arrives")
    owner.does(hook, "replay")
    wait_for(lambda: receiver.data("/dead")[-1] == 1, about="the replay arrives")
    wait_for(lambda: not owner.dead_letters(hook), about="the dead letter is gone")


def test_a_range_is_sent_again(owner: Owner, receiver: Receiver) -> None:
    hook = owner.hook(receiver.url("/again"))
    owner.publish(*range(5))
    wait_for(lambda: owner.endpoint(hook)["lag"] == 0, about="all arrive")
    owner.wait_state(hook, "active")  # stored apart from the positions
    epoch = owner.endpoint(hook)["cursor"].partition(":")[0]
    owner.does(hook, "replay", after=f"{epoch}:1", until=f"{epoch}:3")
    wait_for(lambda: receiver.data("/again")[5:] == [1, 2], about="the range arrives again")


@pytest.mark.long
def test_an_endpoint_that_hangs_delays_no_other(owner: Owner, receiver: Receiver) -> None:
    receiver.answer["/hang"] = "hang"
    owner.hook(receiver.url("/hang"))
    owner.hook(receiver.url("/fine"))
    owner.publish(1)
    wait_for(lambda: receiver.data("/hang") == [1] and receiver.data("/fine") == [1], about="both were called")
    began = time.monotonic()
    owner.publish(2)
    wait_for(lambda: receiver.data("/fine") == [1, 2], about="the other one goes on")
    assert time.monotonic() - began < 12
    assert set(receiver.data("/hang")) == {1}


@pytest.mark.long
def test_kill_9_of_the_deliverer_loses_nothing_and_keeps_the_order(
    pushing: Domain, owner: Owner, receiver: Receiver
) -> None:
    hook = owner.hook(receiver.url("/killed"))
    wait_for(lambda: owner.endpoint(hook)["state"] == "active", about="it has consented")
    for turn in range(3):
        owner.publish(*range(turn * 300, turn * 300 + 300))
        wait_for(partial(_more_than, receiver, turn * 300 + 50), about="some arrived")
        pid = pushing.kill("deliverer")
        pushing.wait_replaced("deliverer", pid)
    wait_for(lambda: owner.endpoint(hook)["lag"] == 0, about="all is acknowledged")
    data = receiver.data("/killed")
    assert list(dict.fromkeys(data)) == list(range(900)), "the first deliveries are in order and complete"
    repeated = len(data) - 900
    assert repeated <= 3 * 60, f"{repeated} repeated, more than what was not acknowledged"


def _more_than(receiver: Receiver, count: int) -> bool:
    return len(receiver.data("/killed")) > count


def test_a_test_event_arrives_and_its_attempt_is_listed(owner: Owner, receiver: Receiver) -> None:
    hook = owner.hook(receiver.url("/test"), secret=SECRET)
    owner.wait_state(hook, "active")
    test_id = owner.does(hook, "endpoint/test")["id"]
    wait_for(lambda: receiver.data("/test") == [{"test": test_id}], about="the test event arrives")
    wait_for(lambda: owner.attempts(hook)[0]["message"] == test_id, about="its attempt is listed")


def herald(domain: Domain, owner: Owner, *arguments: str) -> str:
    """Run the command as the owner; return what it prints."""
    found = CliRunner().invoke(cli, ["hook", *arguments, "--url", domain.url, "--token", owner.token])
    assert found.exit_code == 0, found.output
    return found.output


def test_an_endpoint_is_looked_after_by_command(pushing: Domain, owner: Owner, receiver: Receiver) -> None:
    rest = ("--max-attempts", "1", "--rate", "6000", "--warn-url", receiver.url("/warned"))
    made = herald(pushing, owner, "create", owner.rp, receiver.url("/command"), *rest)
    hook = made.split()[1].rstrip(",")
    assert "whsec_" in made
    owner.wait_state(hook, "active")
    assert hook in herald(pushing, owner, "list")
    assert "http-204" in herald(pushing, owner, "test", hook)
    receiver.answer["/command"] = 422
    owner.publish(1)
    wait_for(lambda: owner.dead_letters(hook), about="a dead letter")
    wait_for(lambda: "http-422" in herald(pushing, owner, "show", hook), every_s=0.1, about="the attempt is shown")
    receiver.answer["/command"] = 204
    assert "again: 1" in herald(pushing, owner, "replay", hook)
    wait_for(lambda: not owner.dead_letters(hook), about="the replay arrives")
    assert "paused" in herald(pushing, owner, "pause", hook)
    assert "active" in herald(pushing, owner, "resume", hook)
    assert f"{pushing.url}/endpoint#" in herald(pushing, owner, "page", hook)


def test_an_endpoint_is_looked_after_without_asyncio(pushing: Domain, owner: Owner, receiver: Receiver) -> None:
    with Client(pushing.url, token=owner.token) as client:
        hook = client.hooks.create(owner.rp, receiver.url("/sync"), secret=SECRET, max_attempts=1)["id"]
        owner.wait_state(hook, "active")
        test_id = client.hooks.test(hook)
        wait_for(lambda: test_id in [one["message"] for one in client.hooks.attempts(hook)], about="the test is listed")
        assert client.hooks.page(hook)["url"].startswith(f"{pushing.url}/endpoint#")
        assert client.hooks.secret_replace(hook, "whsec_" + "B" * 40)["secrets"] == 2
        receiver.answer["/sync"] = 400
        client.publish(owner.rp, {"n": 1})
        wait_for(lambda: client.hooks.dead_letters(hook)["items"], about="a dead letter")
        receiver.answer["/sync"] = 204
        assert client.hooks.replay(hook) == 1
        wait_for(lambda: not client.hooks.dead_letters(hook)["items"], about="the replay arrives")
        assert client.hooks.pause(hook)["state"] == "paused"
        assert client.hooks.resume(hook)["state"] == client.hooks.endpoint(hook)["state"] == "active"


def test_listen_shows_what_an_endpoint_would_get(pushing: Domain, owner: Owner) -> None:
    def publish() -> None:
        wait_for(lambda: owner.hooks() and owner.endpoint(owner.hooks()[0])["state"] == "active", about="it listens")
        owner.publish("listened-to")

    with ThreadPoolExecutor(1) as threads:
        published = threads.submit(publish)
        shown = herald(pushing, owner, "listen", owner.rp, "--count", "1")
        published.result()
    assert "listened-to" in shown
    assert "signature valid" in shown
    assert owner.hooks() == [], "it leaves nothing behind"


@pytest.mark.long
def test_addresses_that_are_not_public_are_refused(new_domain: Any) -> None:
    domain = new_domain(push=1)
    owner = Owner(domain)
    refused = [
        "http://example.com/", "https://127.0.0.1/", "https://10.0.0.1/", "https://169.254.169.254/latest", "https://[::1]/",
        "https://[::ffff:10.0.0.1]/", "https://2130706433/", "https://0x7f000001/", "https://0177.0.0.1/", "https://127.1/",
        "https://user@example.com/", "https://example.com:22/", "ftp://example.com/", "https://exa mple.com/", "https://192.168.1.1/",
        "https://100.64.0.1/", "https://[fe80::1]/", "https://[64:ff9b::a00:1]/", "https://0.0.0.0/", "https://224.0.0.1/",
    ]  # fmt: skip
    for url in refused:
        assert owner.asks_hook(url).status_code == 400, url
    hook = owner.hook("https://localhost/")  # a name that resolves to this machine: refused when it is connected to
    wait_for(lambda: owner.attempts(hook), about="it was tried")
    assert owner.attempts(hook)[0]["reason"] == "address-refused"
