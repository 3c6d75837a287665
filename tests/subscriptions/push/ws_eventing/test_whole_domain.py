"""WS-Eventing against a whole domain: zeep and suds subscribe and manage by the served WSDL, a SOAP receiver gets the events."""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import shutil
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import requests
import suds.client
import suds.sax.element
import suds.transport.http
import zeep
import zeep.exceptions
import zeep.transports
from lxml import etree

from demo.harness.servers import ROOT, Domain, free_port
from demo.harness.servers import wait_for as wait_for_within
from eventing.subscriptions.push.ws_eventing.dialects import EVENTING_2004, EVENTING_2011, WRAPPED, MessageForm
from tests.subscriptions.push.receiver import own_host
from tests.subscriptions.push.ws_eventing.messages import DPWS, FORMS, W3C, envelope, found
from tests.subscriptions.push.ws_eventing.schemas import published_schema
from tests.subscriptions.push.ws_eventing.soap_sink import SoapSink

pytestmark = [pytest.mark.processes, pytest.mark.long]

WSDLS = {2004: "2004", 2011: "2011"}
SETTINGS: dict[str, Any] = {
    "push": 1,
    "push_private": 1,
    "push_ports": "1-65535",
    "push_retries_s": "0.5,1,1,1,1,1,1,1",
    "lease_s_max": 86_400,
}
OPEN = [{"issuer": "anyone", "allow": ["describe", "subscribe"]}]


CONSENT_WAIT_S = 120.0  # the domain asks one host, and for one owner, 30 times a minute: these tests are quicker
wait_for = functools.partial(wait_for_within, within_s=CONSENT_WAIT_S)


@pytest.fixture(scope="module")
def pushing(tmp_path_factory: pytest.TempPathFactory, prepared: Any) -> Iterator[Domain]:
    """A domain that delivers."""
    with Domain(tmp_path_factory.mktemp("wse") / "var", seed=prepared.migrated, **SETTINGS) as running:
        yield running


@pytest.fixture
def sink() -> Iterator[SoapSink]:
    """A SOAP receiver at a host of its own: a domain asks thirty a minute of one for their consent."""
    with SoapSink(own_host()) as running:
        yield running


class Source:
    """An RP and its event source, as its creator has them."""

    def __init__(self, domain: Domain, policy: list[dict[str, Any]] | None = None) -> None:
        self.token = domain.token(admin=True, subject=f"owner-{os.urandom(4).hex()}")
        headers = {"Authorization": f"Bearer {self.token}"}
        self.http = httpx.Client(base_url=domain.url, headers=headers, timeout=60, trust_env=False)
        stated = {"policy": policy} if policy else {}
        self.rp = self.http.post("/api/v1/rps", json=stated).raise_for_status().json()["id"]
        self.url = f"{domain.url}/api/v1/rps/{self.rp}/ws-eventing"
        self.stranger = httpx.Client(timeout=60, trust_env=False)

    def publish(self, *data: Any) -> None:
        """Publish events with these data."""
        events = [
            {"specversion": "1.0", "id": os.urandom(8).hex(), "source": "/t", "type": "t", "data": one} for one in data
        ]
        kind = {"Content-Type": "application/cloudevents-batch+json"}
        self.http.post(f"/api/v1/rps/{self.rp}/events", content=json.dumps(events), headers=kind).raise_for_status()

    def soap(
        self, form: MessageForm, name: str, inside: str = "", *, to: str = "", token: bool = True
    ) -> httpx.Response:
        """Send a request."""
        http = self.http if token else self.stranger
        return http.post(to or self.url, content=envelope(form, name, inside), headers={"Content-Type": "text/xml"})

    def subscribes(self, form: MessageForm, notify_to: str, more: str = "", *, token: bool = True) -> str:
        """Subscribe; return the manager's address."""
        answer = self.soap(form, "Subscribe", delivery(form, notify_to) + more, token=token)
        assert answer.status_code == 200, answer.text
        return found(form, answer.content, "//wse:SubscriptionManager/wsa:Address")[0]

    def endpoint(self, manager: str) -> dict[str, Any]:
        """Return the endpoint of a subscription."""
        answer = self.http.get(f"/api/v1/subscriptions/{subscription_of(manager)}/endpoint").raise_for_status()
        return dict(answer.json())

    def consented(self, manager: str) -> None:
        """Wait until a sink's consent is stored: the end of its subscription is announced from then on only."""
        wait_for(lambda: self.endpoint(manager)["state"] == "active", about="the consent is stored")


def delivery(form: MessageForm, address: str, end_to: str = "") -> str:
    end = f"<wse:EndTo><wsa:Address>{end_to}</wsa:Address></wse:EndTo>" if end_to else ""
    key = '<wsa:ReferenceParameters><x:key xmlns:x="urn:x">k-7</x:key></wsa:ReferenceParameters>'
    return f"{end}<wse:Delivery><wse:NotifyTo><wsa:Address>{address}</wsa:Address>{key}</wse:NotifyTo></wse:Delivery>"


def subscription_of(manager: str) -> str:
    return manager.split("/subscriptions/")[1].split("/")[0]


@pytest.fixture
def source(pushing: Domain) -> Source:
    """An RP for whoever has a token."""
    return Source(pushing)


@pytest.fixture
def open_source(pushing: Domain) -> Source:
    """An RP at which strangers may subscribe."""
    return Source(pushing, OPEN)


class Zeep:
    """A subscriber with zeep."""

    def __init__(self, year: int, token: str) -> None:
        session = requests.Session()
        session.trust_env = False
        session.headers["Authorization"] = f"Bearer {token}"
        self._transport = zeep.transports.Transport(session=session)
        self._wsdl = WSDLS[year]
        self.exchanges = zeep.plugins.HistoryPlugin(maxlen=20)

    def at(self, address: str, service: str, port: str) -> Any:
        client = zeep.Client(f"{address}?wsdl={self._wsdl}", transport=self._transport, plugins=[self.exchanges])
        return client.bind(service, port)


@pytest.mark.parametrize("soap", ["12", "11"])
@pytest.mark.parametrize("year", [2004, 2011])
def test_zeep_subscribes_renews_asks_and_unsubscribes(source: Source, sink: SoapSink, year: int, soap: str) -> None:
    zeeps = Zeep(year, source.token)
    path = f"/zeep-{year}-{soap}"
    made = zeeps.at(source.url, "EventSourceService", f"EventSourceSoap{soap}").SubscribeOp(
        Delivery={"NotifyTo": {"Address": sink.url(path)}}, Expires={"_value_1": "PT60S"}
    )
    granted = "Expires" if year == 2004 else "GrantedExpires"
    assert "PT60S" in str(made[granted])
    source.publish(1, 2, 3)
    wait_for(lambda: sink.data(path) == ["1", "2", "3"], about="the notifications arrive in order")
    manager = zeeps.at(
        made["SubscriptionManager"]["Address"], "SubscriptionManagerService", f"SubscriptionManagerSoap{soap}"
    )
    assert "PT120S" in str(manager.RenewOp(Expires={"_value_1": "PT120S"}))
    left = str(manager.GetStatusOp())
    assert "PT1" in left, left
    manager.UnsubscribeOp()
    with pytest.raises(zeep.exceptions.Fault):
        manager.GetStatusOp()
    count = len(sink.messages(path))
    source.publish(4)
    other = f"{path}-other"
    source.subscribes(W3C, sink.url(other))
    source.publish(5)
    wait_for(lambda: sink.data(other) == ["5"], about="another subscription has what was published later")
    assert len(sink.messages(path)) == count, "nothing is sent after Unsubscribe, and no SubscriptionEnd"


@pytest.mark.parametrize("wsdl", ["2004", "2004-2004", "2011"])
def test_suds_subscribes_renews_asks_and_unsubscribes(source: Source, sink: SoapSink, wsdl: str) -> None:
    logging.getLogger("suds").setLevel(logging.CRITICAL)
    dialect = EVENTING_2011 if wsdl == "2011" else EVENTING_2004
    wsa = (
        "http://schemas.xmlsoap.org/ws/2004/08/addressing"
        if wsdl == "2004-2004"
        else "http://www.w3.org/2005/08/addressing"
    )

    def client(address: str, port: str) -> Any:
        headers = {"Authorization": f"Bearer {source.token}"}
        options = {"cache": None, "headers": headers, "port": f"{port}Soap11", "faults": True}
        return suds.client.Client(f"{address}?wsdl={wsdl}", **options)

    def call(of: Any, name: str, **arguments: Any) -> Any:
        action = suds.sax.element.Element("Action", ns=("wsa", wsa)).setText(dialect.action(name))
        message = suds.sax.element.Element("MessageID", ns=("wsa", wsa)).setText(uuid.uuid4().urn)
        of.set_options(soapheaders=[action, message])
        return getattr(of.service, f"{name}Op")(**arguments)

    path = f"/suds-{wsdl}"
    made = call(
        client(source.url, "EventSource"),
        "Subscribe",
        Delivery={"NotifyTo": {"Address": sink.url(path)}},
        Expires="PT60S",
    )
    source.publish("a", "b")
    wait_for(lambda: sink.data(path) == ['"a"', '"b"'], about="the notifications arrive")
    manager = client(str(made.SubscriptionManager.Address), "SubscriptionManager")
    assert "PT90S" in str(call(manager, "Renew", Expires="PT90S"))
    assert "PT" in str(call(manager, "GetStatus"))
    with contextlib.suppress(AttributeError):  # suds cannot read the empty body that the answer of 2004 has
        call(manager, "Unsubscribe")
    with pytest.raises(suds.WebFault):
        call(manager, "GetStatus")


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_notifications_are_in_the_form_of_the_subscribe(source: Source, sink: SoapSink, form: MessageForm) -> None:
    source.subscribes(form, sink.url("/form"))
    source.publish({"n": 1})
    (message,) = wait_for(lambda: sink.messages("/form"), about="the notification arrives")
    assert etree.QName(message.root).namespace == form.soap.namespace
    assert found(form, message.body, "//wsa:Action") == ["urn:herald:event"]
    assert found(form, message.body, "//wsa:To") == [sink.url("/form")]
    assert message.text("key") == "k-7", "the reference parameter is echoed"
    assert json.loads(message.text("data")) == {"n": 1}
    kind = message.fields["content-type"]
    assert kind.startswith(form.soap.content_type)
    assert ("soapaction" in message.fields) == (form.soap.content_type.startswith("text/xml"))


def test_a_wrapped_notification_is_in_notify(source: Source, sink: SoapSink) -> None:
    source.subscribes(W3C, sink.url("/wrapped"), f'<wse:Format Name="{WRAPPED}"/>')
    source.publish(7)
    (message,) = wait_for(lambda: sink.messages("/wrapped"), about="the notification arrives")
    assert message.action == EVENTING_2011.action("WrappedSinkPortType/NotifyEvent")
    assert found(W3C, message.body, "//wse:Notify/@actionURI") == ["urn:herald:event"]
    assert message.text("data") == "7"


def test_what_is_on_the_wire_is_valid_by_the_published_schema(source: Source, sink: SoapSink) -> None:
    schema = published_schema()
    answers = [source.soap(DPWS, "Subscribe", delivery(DPWS, sink.url("/valid"), sink.url("/valid-end")))]
    manager = found(DPWS, answers[0].content, "//wse:SubscriptionManager/wsa:Address")[0]
    source.publish(1)
    wait_for(lambda: sink.data("/valid") == ["1"], about="the notification arrives")
    answers += [source.soap(DPWS, name, to=manager) for name in ("Renew", "GetStatus")]
    answers.append(source.soap(DPWS, "Subscribe", delivery(DPWS, sink.url("/x")) + "<wse:Filter>x</wse:Filter>"))
    answers += [source.soap(DPWS, name, to=manager) for name in ("Unsubscribe", "GetStatus")]
    assert [one.status_code for one in answers] == [200, 200, 200, 400, 200, 400]
    for one in [answer.content for answer in answers] + [message.body for _, message in sink.received]:
        assert schema.validate(etree.fromstring(one)), (schema.error_log, one)


def test_strangers_subscribe_where_the_policy_lets_them_and_their_address_is_the_credential(
    open_source: Source, source: Source, sink: SoapSink
) -> None:
    refused = source.soap(W3C, "Subscribe", delivery(W3C, sink.url("/no")), token=False)
    assert refused.status_code == 401
    assert "Bearer" in refused.headers["www-authenticate"]
    manager = open_source.subscribes(W3C, sink.url("/open"), token=False)
    open_source.publish("hello")
    wait_for(lambda: sink.data("/open") == ['"hello"'], about="the notification arrives")
    forged = manager[:-1] + ("a" if manager[-1] != "a" else "b")
    assert open_source.soap(W3C, "Unsubscribe", to=forged, token=False).status_code == 400
    assert open_source.soap(W3C, "Unsubscribe", to=manager, token=False).status_code == 200
    made_with_token = open_source.subscribes(W3C, sink.url("/mine"))
    assert open_source.soap(W3C, "Unsubscribe", to=made_with_token, token=False).status_code == 401


def test_nothing_is_sent_to_a_server_that_does_not_consent(source: Source, sink: SoapSink) -> None:
    sink.answer["/deaf"] = "deaf"
    manager = source.subscribes(W3C, sink.url("/deaf"))
    source.publish(1)
    wait_for(lambda: source.endpoint(manager)["failures"] >= 1, about="it was asked")
    assert source.endpoint(manager)["state"] == "unverified"
    assert sink.messages("/deaf") == []
    before, asked, after = (
        source.endpoint(manager)["failures"],
        sink.probes("/deaf"),
        source.endpoint(manager)["failures"],
    )
    assert before <= asked <= after + 1, "each try asks once"


def test_a_receiver_at_the_subscribers_own_address_consents_by_any_success(source: Source) -> None:
    with SoapSink() as sink:
        sink.answer["/mute"] = "mute"
        source.subscribes(W3C, sink.url("/mute"))
        source.publish(1)
        wait_for(lambda: sink.data("/mute") == ["1"], about="the notification arrives")


def test_a_failing_receiver_gets_everything_with_the_same_message_ids(source: Source, sink: SoapSink) -> None:
    manager = source.subscribes(DPWS, sink.url("/down"))
    source.publish(0)
    wait_for(lambda: sink.data("/down") == ["0"], about="the first arrives")
    sink.answer["/down"] = 503
    source.publish(1, 2)
    wait_for(lambda: source.endpoint(manager)["state"] == "failing", about="it fails")
    del sink.answer["/down"]
    wait_for(lambda: sink.data("/down")[-1] == "2", about="the last arrives")
    ids: dict[str, str] = {}
    for message in sink.messages("/down"):
        assert ids.setdefault(message.text("data"), message.header("MessageID")) == message.header("MessageID")
    assert list(ids) == ["0", "1", "2"]


def test_a_lease_that_ends_while_a_notification_fails_ends_quietly(source: Source, sink: SoapSink) -> None:
    end = delivery(W3C, sink.url("/short"), sink.url("/short-end"))
    answer = source.soap(W3C, "Subscribe", end + "<wse:Expires>PT10S</wse:Expires>")
    manager = found(W3C, answer.content, "//wse:SubscriptionManager/wsa:Address")[0]
    source.publish(0)
    wait_for(lambda: sink.data("/short") == ["0"], about="it receives")
    sink.answer["/short"] = 503
    source.publish(1)
    wait_for(lambda: source.soap(W3C, "GetStatus", to=manager).status_code != 200, about="the lease ends")
    count = len(sink.received) + 1  # an attempt that was under way
    with contextlib.suppress(AssertionError):  # what must not happen is waited for, too
        wait_for(lambda: len(sink.received) > count, within_s=2)
    assert len(sink.received) <= count, "nothing is sent after the end"
    assert not sink.messages("/short-end"), "no SubscriptionEnd at a natural end"


@pytest.mark.parametrize("form", [DPWS, W3C], ids=["2004", "2011"])
def test_a_subscription_that_the_source_ends_is_told_so(source: Source, sink: SoapSink, form: MessageForm) -> None:
    end = delivery(form, sink.url("/on"), sink.url("/end"))
    answer = source.soap(form, "Subscribe", end)
    assert answer.status_code == 200, answer.text
    manager = found(form, answer.content, "//wse:SubscriptionManager/wsa:Address")[0]
    source.publish(1)
    wait_for(lambda: sink.data("/on") == ["1"], about="it receives")
    source.consented(manager)
    source.http.delete(f"/api/v1/rps/{source.rp}").raise_for_status()
    (ended,) = wait_for(lambda: sink.messages("/end"), about="SubscriptionEnd arrives")
    assert ended.action == form.eventing.action("SubscriptionEnd")
    assert ended.text("Status") == form.eventing.action("SourceCancelling")
    in_2004 = found(form, ended.body, "//wse:SubscriptionManager/wsa:Address")
    assert in_2004 == ([manager] if form is DPWS else [])
    if form is DPWS:
        assert published_schema().validate(etree.fromstring(ended.body))
    assert source.soap(form, "GetStatus", to=manager).status_code == 400


def test_a_receiver_that_answers_410_ends_the_subscription(source: Source, sink: SoapSink) -> None:
    manager = source.subscribes(W3C, sink.url("/gone"), "<wse:Expires>PT60S</wse:Expires>")
    with_end = source.soap(W3C, "Subscribe", delivery(W3C, sink.url("/gone"), sink.url("/gone-end")))
    assert with_end.status_code == 200
    source.publish(1)
    wait_for(lambda: sink.data("/gone") == ["1", "1"], about="both receive")
    sink.answer["/gone"] = 410
    source.publish(2)
    (ended,) = wait_for(lambda: sink.messages("/gone-end"), about="SubscriptionEnd arrives")
    assert ended.text("Status") == EVENTING_2011.action("DeliveryFailure")
    wait_for(lambda: source.soap(W3C, "GetStatus", to=manager).status_code == 400, about="the other has ended too")


def test_an_administrators_deletion_is_told_and_the_owners_own_is_not(open_source: Source, sink: SoapSink) -> None:
    for path in ("/kept", "/removed"):
        end = delivery(W3C, sink.url(path), sink.url(f"{path}-end"))
        answer = open_source.soap(W3C, "Subscribe", end, token=False)
        manager = found(W3C, answer.content, "//wse:SubscriptionManager/wsa:Address")[0]
        open_source.publish(path)
        wait_for(lambda path=path: sink.data(path), about="it receives")  # type: ignore[misc]
        open_source.consented(manager)
        if path == "/kept":
            assert open_source.soap(W3C, "Unsubscribe", to=manager, token=False).status_code == 200
        else:
            url = f"/api/v1/subscriptions/{subscription_of(manager)}"
            open_source.http.delete(url).raise_for_status()
    wait_for(lambda: sink.messages("/removed-end"), about="SubscriptionEnd arrives")
    assert sink.messages("/kept-end") == []


@pytest.mark.parametrize("language", ["python", "javascript"])
def test_the_receivers_of_the_guide_receive(source: Source, tmp_path: Path, language: str) -> None:
    blocks = (ROOT / "docs/how-to/ws-eventing.md").read_text().split(f"```{language}\n")[1:]
    port = free_port()
    code = blocks[0].split("```")[0].replace("8443", str(port))
    file = tmp_path / ("receiver.py" if language == "python" else "receiver.mjs")
    file.write_text(code)
    program = sys.executable if language == "python" else shutil.which("node")
    if program is None:
        pytest.skip("no Node.js")
    with (tmp_path / "out").open("wb") as output:
        running = subprocess.Popen([program, file], stdout=output, stderr=subprocess.STDOUT)
    try:
        wait_for(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0, about="the receiver listens")
        address = f"http://127.0.0.1:{port}/events"
        answer = source.soap(W3C, "Subscribe", delivery(W3C, address, address))
        assert answer.status_code == 200, answer.text
        source.publish("of-the-guide")
        wait_for(lambda: "of-the-guide" in (tmp_path / "out").read_text(), about="the event is printed")
        source.consented(found(W3C, answer.content, "//wse:SubscriptionManager/wsa:Address")[0])
        source.http.delete(f"/api/v1/rps/{source.rp}").raise_for_status()
        wait_for(lambda: "ended" in (tmp_path / "out").read_text(), about="the end is printed")
    finally:
        running.kill()
        running.wait()


def test_the_subscriber_of_the_guide_subscribes(source: Source, sink: SoapSink, pushing: Domain) -> None:
    blocks = (ROOT / "docs/how-to/ws-eventing.md").read_text().split("```python\n")[1:]
    code = blocks[1].split("```")[0].replace("https://herald.example.org", pushing.url)
    code = code.replace("https://app.example.org:8443/events", sink.url("/guide"))
    code = code.replace("session = requests.Session()", "session = requests.Session()\nsession.trust_env = False")
    exec(compile(code, "guide", "exec"), {"TOKEN": source.token, "RP": source.rp})
    content = (ROOT / "docs/how-to/ws-eventing.md").read_text().split("-d '\n")[1].split("'\n```")[0]
    by_curl = source.http.post(
        source.url, content=content.replace("https://app.example.org:8443/events", sink.url("/curl"))
    )
    assert by_curl.status_code == 200, by_curl.text
    source.publish("by-curl")
    wait_for(lambda: sink.data("/curl") == ['"by-curl"'], about="the notification arrives")


@pytest.mark.parametrize("form", [DPWS, W3C], ids=["2004", "2011"])
def test_a_subscriber_is_told_that_the_source_shuts_down_when_its_domain_closes(
    source: Source, sink: SoapSink, form: MessageForm
) -> None:
    answer = source.soap(form, "Subscribe", delivery(form, sink.url("/stay"), sink.url("/stop")))
    manager = found(form, answer.content, "//wse:SubscriptionManager/wsa:Address")[0]
    source.publish(1)
    wait_for(lambda: sink.data("/stay") == ["1"], about="it receives")
    source.consented(manager)
    drain = f"{source.url.split('/api/')[0]}/api/v1/drain"
    listed = source.http.get(f"{drain}/preview", params={"closes": "true"}).raise_for_status().json()["items"]
    assert [one["fate"] for one in listed if one["mode"] == "ws-eventing"] == ["ends"]
    source.http.post(drain, json={"for_s": 600, "closes": True}).raise_for_status()
    try:
        (ended,) = wait_for(lambda: sink.messages("/stop"), about="SubscriptionEnd arrives")
    finally:
        source.http.delete(drain).raise_for_status()
    assert ended.text("Status") == form.eventing.action("SourceShuttingDown")
    assert source.soap(form, "GetStatus", to=manager).status_code == 400
