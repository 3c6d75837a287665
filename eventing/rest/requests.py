"""Request bodies that several subjects accept. Bounds that depend on settings are checked by the services; here is the form."""

from __future__ import annotations

from eventing.core.events.history import AGE_S_MAX
from eventing.rest.fields import StrictInteger, StrictObject

LEASE_HELP = "Requested duration in seconds; null or absent: the domain's default. The granted duration may be shorter and is in the answer."


class HistoryRequestSerializer(StrictObject):
    """Bounds of a history; members that are absent or null take the default."""

    max_events = StrictInteger(required=False, allow_null=True, help_text="Most events kept.")
    max_bytes = StrictInteger(
        required=False, allow_null=True, help_text="Most bytes kept; reserved from the domain's quota."
    )
    max_age_s = StrictInteger(
        required=False,
        allow_null=True,
        help_text=f"Seconds for which events are returned, at most {AGE_S_MAX}; null: no bound.",
    )


class LeaseRequestSerializer(StrictObject):
    """A renewal."""

    lease_s = StrictInteger(required=False, allow_null=True, help_text=LEASE_HELP)
