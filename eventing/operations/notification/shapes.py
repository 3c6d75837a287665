"""Shapes of answers about contact points, and of the event that a webhook receives."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from eventing.core.shapes import Count, Moment, Shape, doc, one_of, page_of
from eventing.operations.notification.rules.contact_points import KINDS
from eventing.operations.shapes import AlarmAnswer
from eventing.rps.rules.watches import SEVERITIES

LISTED_MAX = 20  # bound: alarms in one message; the others are counted


class ContactPointAnswer(Shape):
    """A contact point. Its secret is never shown, of its URL not the query."""

    id: str
    name: str
    kind: Annotated[str, one_of(*KINDS)]
    target: Annotated[str, doc("The URL without its query, or the addresses.")]
    severity: Annotated[str, one_of(*SEVERITIES), doc("Least severity that is notified.")]
    resolved: Annotated[bool, doc("Whether the end of notified alarms is notified, too.")]
    group_s: Annotated[Count, doc("Least seconds between two messages.")]
    created_at: Moment
    created_by: str
    delivered_at: Annotated[Moment | None, doc("When the last message was accepted; null: none yet.")]
    failures: Annotated[Count, doc("Failed attempts in a row.")]
    failure: Annotated[str, doc("Why the last attempt failed; empty if it did not.")]
    next_at: Annotated[Moment, doc("When a message may be sent again.")]


class ContactPointCreatedAnswer(ContactPointAnswer):
    """A new contact point, with its signing secret."""

    secret: Annotated[str | None, doc("The secret that signs; shown only here. null: by mail.")]


ContactPointPage = page_of(ContactPointAnswer)


class ContactPointTestedAnswer(Shape):
    """The result of a test."""

    delivered: bool
    reason: Annotated[str, doc("The outcome: `http-204`, `not-connected`, a sentence of the mail server.")]
    took_ms: Count


class NotifiedAlarm(AlarmAnswer):
    """An alarm in a message."""

    status: Annotated[str, one_of("raised", "resolved")]
    url: Annotated[str, doc("Page that shows the cause.")]
    runbook: Annotated[str, doc("What to do.")]


class NotificationData(Shape):
    """Data of the event `io.herald.alarms.notified` and, of a test, `io.herald.alarms.tested`."""

    domain: str
    contact_point: Annotated[str, doc("Name of the contact point.")]
    text: Annotated[str, doc("The message in one line.")]
    alarms: Annotated[list[NotifiedAlarm], Meta(max_length=LISTED_MAX)]
    more: Annotated[Count, doc("Alarms that are not listed.")]
    url: Annotated[str, doc("Page of all alarms.")]
