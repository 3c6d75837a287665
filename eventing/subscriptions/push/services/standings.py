"""The standing of an endpoint in its row, and its report."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import asdict

from eventing.outbox import administrative_events as events
from eventing.outbox.services import Outbox
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.push.models import PushEndpoint
from eventing.subscriptions.push.rules.endpoint_states import REASON_CHARS_MAX, EndpointStanding
from eventing.subscriptions.push.shapes import EndpointChangeData


def standing_set(row: PushEndpoint, standing: EndpointStanding, now: datetime) -> None:
    """Set the columns of a standing; the caller saves."""
    if row.state != standing.state:
        row.state_at, row.warn_at, row.warnings = now, None, 0
    row.state, row.verified = standing.state, standing.verified
    row.failures, row.reason = standing.failures, standing.reason[:REASON_CHARS_MAX]
    since = standing.failing_since
    row.failing_since = None if since is None else datetime.fromtimestamp(since, tz=UTC)
    row.next_at = datetime.fromtimestamp(standing.next_at, tz=UTC) if standing.next_at else None


def changed_event(outbox: Outbox, row: PushEndpoint, subscription: Subscription) -> None:
    """Report the state of an endpoint on the administrative RPs."""
    data = EndpointChangeData.of(
        row,
        subscription=row.pk,
        owner=subscription.owner,
        endpoint=str(subscription.deliver.get("url", "")),
    )
    outbox.event(events.ENDPOINT_CHANGED, subscription.lease_at, asdict(data), domain_too=True)
