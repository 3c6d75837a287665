"""The addresses of WS-Eventing: what is refused and how, with nothing sent to anybody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest
from django.test import Client
from lxml import etree

from eventing.access.services.tokens import token_create
from eventing.core.errors import Conflict
from eventing.core.principals import Principal
from eventing.rps.models import RendezvousPoint
from eventing.store.client import client
from eventing.store.keys import PUSH_ENDINGS_KEY
from eventing.store.push_endings import PushEnding
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.push.models import PushEndpoint
from eventing.subscriptions.push.rules.endpoint_states import EndpointStanding, EndpointState
from eventing.subscriptions.push.services.endpoints import endpoint_secret_rotate
from eventing.subscriptions.push.services.outcomes import StandingFound, standings_save
from eventing.subscriptions.push.services.vault import unseal
from eventing.subscriptions.push.services.ws_eventing import manager_address
from eventing.subscriptions.push.ws_eventing.dialects import EVENTING_2004, SOAP_11, SOAP_12, MessageForm
from tests.planes import events_at
from tests.subscriptions.push.ws_eventing.messages import DELIVERY, DPWS, FORMS, W3C, envelope, found

pytestmark = pytest.mark.usefixtures("planes")

NewRp = Callable[..., RendezvousPoint]
OPEN = [{"issuer": "anyone", "allow": ["describe", "subscribe"]}]
FORM = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())


class Soap:
    """A client, with the token of ben or without."""

    def __init__(self, token: str) -> None:
        self._token: dict[str, Any] = {"HTTP_AUTHORIZATION": f"Bearer {token}"} if token else {}

    def __call__(self, url: str, content: bytes, kind: str = SOAP_12.content_type, **fields: Any) -> Any:
        return Client().post(url, data=content, content_type=kind, **{**self._token, **fields})

    def subscribes(self, rp: RendezvousPoint, form: MessageForm = W3C, inside: str = DELIVERY) -> Any:
        return self(source(rp), envelope(form, "Subscribe", inside), form.soap.content_type)

    def manages(self, form: MessageForm, name: str, inside: str = "") -> Any:
        (row,) = Subscription.objects.all()
        return self(path_of(manager_address(row.id)), envelope(form, name, inside), form.soap.content_type)


def source(rp: RendezvousPoint) -> str:
    return f"/api/v1/rps/{rp.id}/ws-eventing"


def path_of(url: str) -> str:
    return "/" + url.split("/", 3)[3]


def subcode(form: MessageForm, answer: Any) -> str:
    """The fault's subcode, without its prefix; of a fault without one, its code."""
    if form.soap is SOAP_11:
        return str(etree.fromstring(answer.content).findtext(".//faultcode")).partition(":")[2]
    return (found(form, answer.content, "//s:Subcode/s:Value") or found(form, answer.content, "//s:Value"))[
        0
    ].partition(":")[2]


@pytest.fixture
def ben_soap(ben: Principal) -> Soap:
    return Soap(token_create(subject=ben.subject, lease_s=600).token)


@pytest.fixture
def stranger() -> Soap:
    return Soap("")


@FORM
def test_subscribe_makes_a_durable_subscription_with_a_lease(new_rp: NewRp, ben_soap: Soap, form: MessageForm) -> None:
    answer = ben_soap.subscribes(new_rp(), form, DELIVERY + "<wse:Expires>PT60S</wse:Expires>")
    assert (answer.status_code, answer["content-type"]) == (200, form.soap.content_type)
    (row,) = Subscription.objects.all()
    assert (row.owner, row.granted_s, row.deliver["mode"]) == ("ben", 60, "ws-eventing")
    assert row.deliver["url"] == "https://sink.example/events"
    assert found(form, answer.content, f"//wse:{form.eventing.expires}") == ["PT60S"]
    assert found(form, answer.content, "//wse:SubscriptionManager/wsa:Address") == [manager_address(row.id)]
    renewed = ben_soap.manages(form, "Renew", "<wse:Expires>PT90S</wse:Expires>")
    assert found(form, renewed.content, f"//wse:{form.eventing.expires}") == ["PT90S"]
    status = ben_soap.manages(form, "GetStatus")
    assert found(form, status.content, f"//wse:{form.eventing.expires}")[0] in ("PT89S", "PT88S")
    ended = ben_soap.manages(form, "Unsubscribe")
    assert ended.status_code == 200
    assert not Subscription.objects.exists()


@FORM
def test_an_unknown_subscription_is_answered_as_each_dialect_has_it(
    new_rp: NewRp, ben_soap: Soap, form: MessageForm
) -> None:
    ben_soap.subscribes(new_rp(), form)
    (row,) = Subscription.objects.all()
    url = path_of(manager_address(row.id))
    row.delete()
    expected = {"Renew": "UnableToRenew", "GetStatus": "InvalidMessage", "Unsubscribe": "InvalidMessage"}
    for name, in_2004 in expected.items():
        answer = ben_soap(url, envelope(form, name), form.soap.content_type)
        assert subcode(form, answer) == (in_2004 if form.eventing is EVENTING_2004 else "UnknownSubscription")
        sender = form.soap is SOAP_12 and (form.eventing is not EVENTING_2004 or name != "Renew")
        assert answer.status_code == (400 if sender else 500)


REFUSED = [
    (DELIVERY + "<wse:Filter>x</wse:Filter>", "FilteringNotSupported", "FilteringNotSupported"),
    (DELIVERY + "<wse:Expires>soon</wse:Expires>", "InvalidExpirationTime", "UnsupportedExpirationType"),
    (DELIVERY + "<wse:Expires>-PT5S</wse:Expires>", "InvalidExpirationTime", "UnsupportedExpirationValue"),
    (DELIVERY + "<wse:Expires>P99Y</wse:Expires>", "", "UnsupportedExpirationValue"),
    ("<wse:Delivery/>", "InvalidMessage", "NoDeliveryMechanismEstablished"),
    (DELIVERY.replace("https://sink.example", "https://10.0.0.1"), "InvalidMessage", "UnusableEPR"),
    (DELIVERY.replace("https://sink.example", "https://169.254.169.254"), "InvalidMessage", "UnusableEPR"),
    (DELIVERY.replace("https://sink.example", "https://[::ffff:10.0.0.1]"), "InvalidMessage", "UnusableEPR"),
    (DELIVERY.replace("https://sink.example", "https://2130706433"), "InvalidMessage", "UnusableEPR"),
    (DELIVERY.replace("https://sink.example", "http://sink.example"), "InvalidMessage", "UnusableEPR"),
    (DELIVERY.replace("https://sink.example", "ftp://sink.example"), "InvalidMessage", "UnusableEPR"),
    (
        "<wse:EndTo><wsa:Address>https://victim.example/</wsa:Address></wse:EndTo>" + DELIVERY,
        "InvalidMessage",
        "UnusableEPR",
    ),
]
"""Content of a Subscribe, and the fault of the dialect of 2004, empty for none, and of 2011."""


@FORM
def test_what_is_refused_has_the_fault_of_the_dialect(new_rp: NewRp, ben_soap: Soap, form: MessageForm) -> None:
    rp = new_rp()
    for inside, in_2004, in_2011 in REFUSED:
        answer = ben_soap.subscribes(rp, form, inside)
        wanted = in_2004 if form.eventing is EVENTING_2004 else in_2011
        if not wanted:
            assert answer.status_code == 200, "in 2004 the source may grant less"
            Subscription.objects.all().delete()
            continue
        assert subcode(form, answer) == wanted, inside
        assert answer.status_code == (400 if form.soap is SOAP_12 else 500)
    assert not Subscription.objects.exists()


def test_a_renewal_that_would_shorten_the_lease_is_not_granted_exactly(new_rp: NewRp, ben_soap: Soap) -> None:
    rp = new_rp()
    ben_soap.subscribes(rp, W3C, DELIVERY + "<wse:Expires>PT600S</wse:Expires>")
    answer = ben_soap.manages(W3C, "Renew", "<wse:Expires>PT5S</wse:Expires>")
    assert subcode(W3C, answer) == "UnsupportedExpirationValue"
    best = ben_soap.manages(W3C, "Renew", '<wse:Expires BestEffort="true">PT5S</wse:Expires>')
    assert found(W3C, best.content, "//wse:GrantedExpires")[0].startswith("PT59")


def test_renewing_continues_with_an_endpoint_that_was_paused_by_failures(new_rp: NewRp, ben_soap: Soap) -> None:
    ben_soap.subscribes(new_rp())
    (row,) = Subscription.objects.all()
    paused = EndpointStanding(EndpointState.PAUSED, failures=9, reason="schedule-exhausted: http-503", verified=True)
    standings_save([StandingFound(row.id, 1, paused)])
    ben_soap.manages(W3C, "Renew")
    assert PushEndpoint.objects.get(pk=row.id).state == "active"


BAD = {
    "bomb": b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c"><!ENTITY d "&b;&b;&b;">]><a>&d;</a>',
    "external entity": b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
    "parameter entity": b'<!DOCTYPE a [<!ENTITY % b SYSTEM "http://127.0.0.1/x"> %b;]><a/>',
    "huge": b"<a>" + b"x" * 70_000 + b"</a>",
    "deep": b"<a>" * 200 + b"</a>" * 200,
    "json": b"{}",
    "white space": b" ",
    "UTF-16": "<a/>".encode("utf-16"),
    "two bodies": envelope(W3C, "GetStatus").replace(b"<s:Body>", b"<s:Body/><s:Body>"),
    "wrapped signature": envelope(W3C, "GetStatus", more="<wsa:Action>urn:other</wsa:Action>"),
}


@pytest.mark.parametrize("soap", [SOAP_11, SOAP_12], ids=["1.1", "1.2"])
def test_what_is_no_message_is_answered_with_a_fault(new_rp: NewRp, ben_soap: Soap, soap: Any) -> None:
    url = source(new_rp())
    for what, content in BAD.items():
        answer = ben_soap(url, content, soap.content_type)
        assert answer.status_code == (400 if soap is SOAP_12 else 500), what
        assert etree.fromstring(answer.content).find(f".//{{{soap.namespace}}}Fault") is not None
        assert b"root:" not in answer.content


def test_an_endpoint_without_signatures_has_no_secret_to_rotate(new_rp: NewRp, ben: Principal, ben_soap: Soap) -> None:
    ben_soap.subscribes(new_rp())
    (row,) = Subscription.objects.all()
    with pytest.raises(Conflict):
        endpoint_secret_rotate(subscription_id=row.id, principal=ben, secret="whsec_" + "A" * 40)


def test_another_method_is_answered_with_those_that_there_are(new_rp: NewRp) -> None:
    answer = Client().put(source(new_rp()))
    assert (answer.status_code, answer["Allow"]) == (405, "GET, POST")


def test_another_version_of_soap_is_a_version_mismatch(new_rp: NewRp, ben_soap: Soap) -> None:
    answer = ben_soap(source(new_rp()), b'<Envelope xmlns="urn:soap"/>')
    assert answer.status_code == 500
    assert found(W3C, answer.content, "//s:Code/s:Value") == ["s:VersionMismatch"]


def test_a_message_of_another_port_or_with_another_action_is_refused(new_rp: NewRp, ben_soap: Soap) -> None:
    rp = new_rp()
    assert subcode(DPWS, ben_soap(source(rp), envelope(DPWS, "Renew"))) == "ActionNotSupported"
    header = "<wsa:Action>urn:other</wsa:Action><wsa:MessageID>urn:1</wsa:MessageID>"
    answer = ben_soap(source(rp), envelope(DPWS, "Subscribe", DELIVERY, header=header))
    assert subcode(DPWS, answer) == "ActionNotSupported"
    ben_soap.subscribes(rp)
    assert subcode(W3C, ben_soap.manages(W3C, "Subscribe", DELIVERY)) == "ActionNotSupported"


def test_the_policy_decides_who_subscribes(new_rp: NewRp, ben_soap: Soap, stranger: Soap) -> None:
    closed, opened = (
        new_rp(policy=[{"issuer": "domain", "claims": {"sub": {"equals": "x"}}, "allow": ["subscribe"]}]),
        new_rp(policy=OPEN),
    )
    assert ben_soap.subscribes(closed).status_code == 403
    refused = stranger.subscribes(closed)
    assert (refused.status_code, refused["www-authenticate"]) == (401, 'Bearer realm="localhost"')
    assert Soap("nonsense").subscribes(opened).status_code == 401, "an invalid token is not the same as none"
    assert ben_soap(f"/api/v1/rps/{'a' * 26}/ws-eventing", envelope(W3C, "Subscribe", DELIVERY)).status_code == 404
    unknown = stranger(f"/api/v1/rps/{'a' * 26}/ws-eventing", envelope(W3C, "Subscribe", DELIVERY))
    assert unknown.status_code == 401, "as where there is one that does not let strangers subscribe"
    assert not Subscription.objects.exists()
    assert stranger.subscribes(opened).status_code == 200
    (row,) = Subscription.objects.all()
    assert row.owner == "#127.0.0.1"


def test_strangers_of_one_address_share_the_quota_of_endpoints_without_consent(
    new_rp: NewRp, stranger: Soap, configure: Any
) -> None:
    configure(push_unverified_max=2)
    rp = new_rp(policy=OPEN)
    assert [stranger.subscribes(rp).status_code for _ in range(2)] == [200, 200]
    refused = stranger.subscribes(rp)
    assert refused.status_code == 500
    assert "without consent" in found(W3C, refused.content, "//s:Text")[0]
    assert Subscription.objects.count() == 2


def test_the_managers_address_is_the_credential_of_a_stranger_and_not_of_a_token(
    new_rp: NewRp, stranger: Soap, ben_soap: Soap
) -> None:
    rp = new_rp(policy=[*OPEN, {"issuer": "domain", "allow": ["subscribe"]}])
    stranger.subscribes(rp)
    (row,) = Subscription.objects.all()
    elsewhere = {"REMOTE_ADDR": "192.0.2.9"}
    right = path_of(manager_address(row.id))
    wrong = right[:-1] + ("a" if right[-1] != "a" else "b")
    assert subcode(W3C, stranger(wrong, envelope(W3C, "Unsubscribe"))) == "UnknownSubscription"
    assert stranger(right, envelope(W3C, "Unsubscribe"), **elsewhere).status_code == 200
    ben_soap.subscribes(rp)
    (row,) = Subscription.objects.all()
    assert stranger(path_of(manager_address(row.id)), envelope(W3C, "Unsubscribe")).status_code == 401
    other = Soap(token_create(subject="carl", lease_s=600).token)
    assert other(path_of(manager_address(row.id)), envelope(W3C, "Unsubscribe")).status_code == 403
    assert Subscription.objects.exists()


def test_a_receiver_that_is_gone_is_told_of_the_end_if_it_ever_consented(new_rp: NewRp, ben_soap: Soap) -> None:
    """The consent may not be stored: of several standings that wait for the database the last one is written."""
    rp = new_rp()
    told = []
    for consented in (False, True):
        ben_soap.subscribes(rp)
        (row,) = Subscription.objects.all()
        gone = EndpointStanding(EndpointState.GONE, reason="http-410")
        standings_save([StandingFound(row.id, 1, gone, consented)])
        assert not Subscription.objects.exists()
        told += [(row.id, consented)] * client().llen(PUSH_ENDINGS_KEY)
    assert told == [(row.id, True)]
    (ending,) = cast("list[bytes]", client().lrange(PUSH_ENDINGS_KEY, 0, -1))
    assert msgspec.msgpack.decode(ending, type=PushEnding).subscription == row.id


def test_neither_answers_nor_administrative_events_show_what_an_address_has_in_it(
    new_rp: NewRp, ben_soap: Soap
) -> None:
    rp = new_rp()
    key = "<wsa:ReferenceParameters><x:key>hidden</x:key></wsa:ReferenceParameters>"
    hidden = DELIVERY.replace("/events", "/events?key=hidden").replace("</wsa:Address>", f"</wsa:Address>{key}")
    ben_soap.subscribes(rp, W3C, hidden)
    (row,) = Subscription.objects.all()
    sealed = bytes(PushEndpoint.objects.get(pk=row.id).sealed)
    assert "hidden" in unseal(row.id, sealed).url
    assert b"hidden" not in sealed
    assert "hidden" not in str(row.deliver)
    assert "hidden" not in str(events_at(f"{rp.id}.admin"))


@pytest.mark.parametrize("query", ["wsdl", "wsdl=2004", "wsdl=2004-2004", "wsdl=2011"])
def test_the_wsdl_states_the_address_at_which_it_is(query: str) -> None:
    url = f"/api/v1/rps/{'a' * 26}/ws-eventing"
    answer = Client().get(f"{url}?{query}")
    assert answer.status_code == 200
    root: Any = etree.fromstring(answer.content)
    assert {one.rpartition(":")[2].partition("/")[2] for one in root.xpath("//@location")} == {url[1:]}
    assert Client().get(url).status_code == 400
