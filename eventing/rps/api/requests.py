"""Bodies of requests about rendezvous points. Bounds that depend on settings are the services'; here is the form."""

from __future__ import annotations

from django.core.validators import RegexValidator

from eventing.access.api.fields import PolicyField
from eventing.core.names import NAME_CHARS_MAX
from eventing.rest.fields import Integer, Members, Text, Truth
from eventing.rest.requests import LEASE_HELP, HistoryRequest
from eventing.rps.api.fields import ACK_PATTERN, AudienceField, WatchField
from eventing.rps.models import ACK_CHARS_MAX, TITLE_CHARS_MAX

NAME_HELP = "Hierarchical name under this domain, /authority/a/b/; without leading slash it is put under the domain."
NAME_PATTERN = r"^/?[A-Za-z0-9._~-]{1,64}(/[A-Za-z0-9._~-]{1,64}){0,15}/?$"


class RendezvousPointChange(Members):
    """What can be changed of an RP; absent members stay."""

    name = Text(
        required=False,
        allow_null=True,
        min_length=1,
        max_length=NAME_CHARS_MAX,
        validators=[RegexValidator(NAME_PATTERN, "Each part is 1 to 64 letters, digits or . _ ~ - characters.")],
        help_text=NAME_HELP,
    )
    title = Text(required=False, allow_blank=True, max_length=TITLE_CHARS_MAX)
    history = HistoryRequest(required=False, allow_null=True)
    policy = PolicyField(required=False, allow_null=True)
    ack = Text(
        required=False,
        max_length=ACK_CHARS_MAX,
        validators=[RegexValidator(ACK_PATTERN, "Use accepted, stored or replicated:n.")],
        help_text="How durable an event is when its publisher is answered: accepted, stored (the default), replicated:n.",
    )
    renew_on_use = Truth(
        required=False,
        help_text="Whether publishing and reading renew the lease (the default), for as long as was asked last.",
    )
    audience = AudienceField(required=False, allow_null=True)
    watch = WatchField(required=False, allow_null=True)


class RendezvousPointCreation(RendezvousPointChange):
    """A new RP; every member has a default."""

    lease_s = Integer(required=False, allow_null=True, help_text=LEASE_HELP)
