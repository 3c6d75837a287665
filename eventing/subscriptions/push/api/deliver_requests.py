"""The member `deliver` of requests about durable subscriptions. Rules check what depends on several members."""

from __future__ import annotations

from rest_framework import serializers

from eventing.rest.fields import StrictBoolean, StrictInteger, StrictObject, StrictString
from eventing.subscriptions.push.rules.addresses import URL_CHARS_MAX
from eventing.subscriptions.push.rules.client_identities import PEM_CHARS_MAX
from eventing.subscriptions.push.rules.options import (
    ATTEMPTS_MAX,
    BATCH_EVENTS_MAX,
    FORMATS,
    HEADER_CHARS_MAX,
    HEADERS_MAX,
    IN_FLIGHT_MAX,
    MODES,
    SIGNATURES,
    VERIFICATIONS,
)
from eventing.subscriptions.push.rules.request_rates import RATE_MAX


class DeliverRequestSerializer(StrictObject):
    """Delivery of a subscription's events."""

    mode = serializers.ChoiceField(choices=["pull", *MODES])
    url = StrictString(
        required=False,
        max_length=URL_CHARS_MAX,
        help_text="Address of the endpoint; for all modes but `pull`, and so are the others.",
    )
    format = serializers.ChoiceField(
        required=False,
        choices=list(FORMATS),
        help_text="Form of the events: CloudEvents in structured, binary or batch mode, or the data alone.",
    )
    ordered = StrictBoolean(
        required=False, help_text="Send an event after the one before it is settled. The default is true."
    )
    in_flight = StrictInteger(
        required=False, max_value=IN_FLIGHT_MAX, help_text="Requests at once, of an unordered subscription."
    )
    batch = StrictInteger(
        required=False, max_value=BATCH_EVENTS_MAX, help_text="Most events of a request, in the format `batch`."
    )
    headers = serializers.DictField(
        child=StrictString(max_length=HEADER_CHARS_MAX),
        required=False,
        help_text=f"Up to {HEADERS_MAX} fields of every request. Their values are never shown.",
    )
    secret = StrictString(
        required=False,
        max_length=128,
        help_text="Secret of the signatures v1: `whsec_` and the Base64 form of 24 to 64 random bytes. Never shown.",
    )
    signature = serializers.ChoiceField(
        required=False, choices=list(SIGNATURES), help_text="Signatures. The default is v1 with a secret, else v1a."
    )
    verification = serializers.ChoiceField(
        required=False,
        choices=list(VERIFICATIONS),
        help_text="How the endpoint consents: by repeating the challenge of an event, or by the handshake of CloudEvents.",
    )
    rate = StrictInteger(
        required=False,
        allow_null=True,
        max_value=RATE_MAX,
        help_text="Most requests a minute; asked for in the handshake of CloudEvents. The default null sets no bound.",
    )
    client_certificate = StrictString(
        required=False,
        allow_null=True,
        max_length=PEM_CHARS_MAX,
        help_text="Certificate for servers that ask for one (mutual TLS), as PEM, the leaf first. Its fingerprint is shown.",
    )
    client_key = StrictString(
        required=False,
        allow_null=True,
        max_length=PEM_CHARS_MAX,
        help_text="Key of this certificate as PEM, without a passphrase. Never shown.",
    )
    warn_url = StrictString(
        required=False,
        allow_null=True,
        max_length=URL_CHARS_MAX,
        help_text="Address that gets a signed warning when the endpoint is paused or gone.",
    )
    max_attempts = StrictInteger(
        required=False,
        allow_null=True,
        max_value=ATTEMPTS_MAX,
        help_text="Attempts after which an event is a dead letter. The default null pauses the endpoint when the retry "
        "schedule is exhausted.",
    )
