"""Bodies of requests that several subjects take. Bounds that depend on settings are the services'; here is the form."""

from __future__ import annotations

from eventing.core.events.history import AGE_S_MAX
from eventing.rest.fields import Integer, Members

LEASE_HELP = "Seconds asked for; null or absent: the domain's default. The domain may grant less and says so."


class HistoryRequest(Members):
    """Bounds of a history; what is absent or null takes the default."""

    max_events = Integer(required=False, allow_null=True, help_text="Most events kept.")
    max_bytes = Integer(required=False, allow_null=True, help_text="Most bytes kept; reserved of the domain's quota.")
    max_age_s = Integer(
        required=False, allow_null=True, help_text=f"Seconds events are shown, at most {AGE_S_MAX}; null: no bound."
    )


class LeaseRequest(Members):
    """A renewal."""

    lease_s = Integer(required=False, allow_null=True, help_text=LEASE_HELP)
