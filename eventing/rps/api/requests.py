"""Request bodies for rendezvous points. Bounds that depend on settings are checked by the services; here is the form."""

from __future__ import annotations

from django.core.validators import RegexValidator

from eventing.access.api.fields import PolicyField
from eventing.core.names import NAME_CHARS_MAX
from eventing.rest.fields import StrictBoolean, StrictInteger, StrictObject, StrictString
from eventing.rest.requests import LEASE_HELP, HistoryRequestSerializer
from eventing.rps.api.fields import ACK_PATTERN, AudienceField, WatchField
from eventing.rps.models import ACK_CHARS_MAX, TITLE_CHARS_MAX

NAME_HELP = "Hierarchical name under this domain, /authority/a/b/; without leading slash it is placed under the domain."
NAME_PATTERN = r"^/?[A-Za-z0-9._~-]{1,64}(/[A-Za-z0-9._~-]{1,64}){0,15}/?$"


class RendezvousPointChangeSerializer(StrictObject):
    """Changes of an RP; absent members stay."""

    name = StrictString(
        required=False,
        allow_null=True,
        min_length=1,
        max_length=NAME_CHARS_MAX,
        validators=[RegexValidator(NAME_PATTERN, "Each part is 1 to 64 letters, digits or . _ ~ - characters.")],
        help_text=NAME_HELP,
    )
    title = StrictString(required=False, allow_blank=True, max_length=TITLE_CHARS_MAX)
    history = HistoryRequestSerializer(required=False, allow_null=True)
    policy = PolicyField(required=False, allow_null=True)
    ack = StrictString(
        required=False,
        max_length=ACK_CHARS_MAX,
        validators=[RegexValidator(ACK_PATTERN, "Use accepted, stored or replicated:n.")],
        help_text="Durability of an event when its publisher receives the answer: accepted, stored (the default), replicated:n.",
    )
    renew_on_use = StrictBoolean(
        required=False,
        help_text="Whether publishing and reading renew the lease (the default), by the duration requested last.",
    )
    audience = AudienceField(required=False, allow_null=True)
    watch = WatchField(required=False, allow_null=True)


class RendezvousPointCreationSerializer(RendezvousPointChangeSerializer):
    """A new RP; every member has a default."""

    lease_s = StrictInteger(required=False, allow_null=True, help_text=LEASE_HELP)
