"""Consent of a sink: a probe before anything else is sent to it, and the answers that are a consent. Pure.

Neither dialect has a challenge. The probe is a Get of WS-Transfer to NotifyTo, with a message id that nobody can guess. An
endpoint of WS-Addressing relates whatever it answers, be it a fault, to that id; a server that is no such endpoint does not.
"""

from __future__ import annotations

import re

from eventing.subscriptions.push.rules.verdicts import PushAnswer
from eventing.subscriptions.push.ws_eventing.dialects import MessageForm
from eventing.subscriptions.push.ws_eventing.envelopes import EndpointReference, Envelope
from eventing.subscriptions.push.ws_eventing.xml_library import etree

_TRANSFER_2004 = "http://schemas.xmlsoap.org/ws/2004/09/transfer"
_TRANSFER_2011 = "http://www.w3.org/2011/03/ws-tra"
_RELATES_TO = re.compile(rb"RelatesTo(?:\s[^<>]*)?>\s*([^<>\s]*)\s*<")


def probe_id(token: str) -> str:
    """Return the message id of a probe."""
    return f"urn:herald:probe:{token}"


def probe_action(form: MessageForm) -> str:
    """Return the action of a probe in this form."""
    return f"{_TRANSFER_2004 if form.eventing.year == 2004 else _TRANSFER_2011}/Get"


def probe(form: MessageForm, to: EndpointReference, token: str) -> bytes:
    """Make a probe.

    Args:
        token: random text, which never occurs again.
    """
    made = Envelope(form, probe_action(form), message_id=probe_id(token), to=to, replies=True)
    if form.eventing.year == 2011:
        etree.SubElement(made.body, f"{{{_TRANSFER_2011}}}Get")
    return made.encoded()


def has_consented(answer: PushAnswer, token: str, requester: str) -> bool:
    """Return True if the answer to a probe is the sink's consent.

    That is: an answer that relates to the probe, whatever its status; or any answer 2xx of the very address from which
    Subscribe was sent.
    """
    if answer.failure or answer.status in (404, 405, 410):
        return False
    if any(one.decode("latin-1") == probe_id(token) for one in _RELATES_TO.findall(answer.excerpt)):
        return True
    return 200 <= answer.status < 300 and bool(requester) and answer.address == requester
