"""Bodies of requests to the CloudEvents Subscriptions API."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from eventing.core.events.cursors import CURSOR_CHARS_MAX
from eventing.rest.fields import LEASE_HELP, JsonDocument, StrictInteger, StrictObject, StrictString
from eventing.subscriptions.push.api.deliver_requests import DeliverRequestSerializer
from eventing.subscriptions.push.rules.addresses import URL_CHARS_MAX
from eventing.subscriptions.push.rules.cloudevents_subscriptions import METHOD, PROTOCOL, SETTINGS
from eventing.subscriptions.push.rules.credentials import CREDENTIAL_CHARS_MAX, CREDENTIAL_TYPES
from eventing.subscriptions.push.rules.options import CLOUDEVENTS_FORMATS

REFERENCE_CHARS_MAX = 1100
FILTERS_MAX = 100  # bound: filters, or types, of a request; it is refused


@extend_schema_field({"description": "Ignored: a member of answers."})
class IgnoredMember(JsonDocument):
    """A member that the domain sets."""


class CloudEventsSettingsRequestSerializer(StrictObject):
    """Settings of the protocol HTTP; `headers` and `method` are the specification's, the others Herald's."""

    method = serializers.ChoiceField(required=False, choices=[METHOD], help_text="POST, the default.")

    def get_fields(self) -> dict[str, Any]:
        """Return the fields, those of `deliver` among them."""
        stated: dict[str, Any] = DeliverRequestSerializer().get_fields()
        shared = {name: stated[name] for name in SETTINGS}
        for field in shared.values():
            field.allow_null = True
        shared["format"] = serializers.ChoiceField(
            required=False, allow_null=True, choices=list(CLOUDEVENTS_FORMATS), help_text=stated["format"].help_text
        )
        return {**super().get_fields(), **shared}


class CloudEventsCredentialRequestSerializer(StrictObject):
    """A credential that authorizes delivery at the sink. Its secret is never shown."""

    credentialtype = serializers.ChoiceField(choices=list(CREDENTIAL_TYPES))
    identifier = StrictString(required=False, max_length=CREDENTIAL_CHARS_MAX, help_text="Account of PLAIN.")
    secret = StrictString(required=False, max_length=CREDENTIAL_CHARS_MAX, help_text="Password of PLAIN.")
    accesstoken = StrictString(required=False, max_length=CREDENTIAL_CHARS_MAX, help_text="Token of ACCESSTOKEN.")
    accesstokenexpiresutc = serializers.DateTimeField(
        required=False, help_text="When the token expires; the endpoint is paused then."
    )
    accesstokentype = StrictString(required=False, max_length=32, help_text="bearer, the default.")


class CloudEventsConfigRequestSerializer(StrictObject):
    """The source of the events."""

    rp = StrictString(max_length=REFERENCE_CHARS_MAX, help_text="Id or name of the rendezvous point.")

    def get_fields(self) -> dict[str, Any]:
        """Return the fields with `from`, a keyword of Python."""
        begin = StrictString(
            required=False,
            max_length=CURSOR_CHARS_MAX,
            help_text="Where delivery begins: `now` (the default), `earliest`, `last`, a cursor, or `time:` with a time by "
            "RFC 3339. For new subscriptions.",
        )
        return {**super().get_fields(), "from": begin}


class CloudEventsSubscriptionRequestSerializer(StrictObject):
    """A subscription object. `id` and `lease` are ignored, so that an object can be written back as it was read."""

    id = IgnoredMember(required=False)
    lease = IgnoredMember(required=False)
    types = serializers.ListField(
        child=StrictString(max_length=URL_CHARS_MAX), required=False, allow_null=True, max_length=FILTERS_MAX,
        help_text="Refused unless empty: Herald does not filter.",
    )  # fmt: skip
    filters = serializers.ListField(
        child=serializers.DictField(), required=False, allow_null=True, max_length=FILTERS_MAX,
        help_text="Refused unless empty: Herald does not filter.",
    )  # fmt: skip
    config = CloudEventsConfigRequestSerializer()
    sink = StrictString(max_length=URL_CHARS_MAX, help_text="Address of the endpoint.")
    sinkcredential = CloudEventsCredentialRequestSerializer(required=False, allow_null=True)
    protocol = StrictString(max_length=16, help_text=f"{PROTOCOL}; other protocols are refused.")
    protocolsettings = CloudEventsSettingsRequestSerializer(required=False, allow_null=True)
    lease_s = StrictInteger(required=False, allow_null=True, help_text=f"Extension. {LEASE_HELP} An update renews it.")

    def get_fields(self) -> dict[str, Any]:
        """Return the fields with `source`, an attribute of fields."""
        source = StrictString(
            required=False, allow_null=True, max_length=URL_CHARS_MAX, help_text="Refused: Herald does not filter."
        )
        return {**super().get_fields(), "source": source}
