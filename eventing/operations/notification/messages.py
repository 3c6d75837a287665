"""Messages about alarms: the signed request of a webhook, and the text of a mail.

A webhook receives a CloudEvent in structured mode with the signatures of Standard Webhooks, as endpoints of subscriptions do. The id
of a message is a digest of its text: a message that is sent again, because its answer was lost, has the same id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from eventing.conf import config
from eventing.core.timestamps import timestamp
from eventing.operations.models import Alarm
from eventing.operations.notification.models import ContactPoint
from eventing.operations.notification.selectors import PendingNotification
from eventing.operations.notification.shapes import LISTED_MAX, NotificationData, NotifiedAlarm
from eventing.operations.services.alarms import alarm_answer
from eventing.subscriptions.push.modes import PushRequest
from eventing.subscriptions.push.rules.signatures import secret_parse, signature_field
from eventing.subscriptions.push.webhook.mode import STRUCTURED_TYPE

NOTIFIED, TESTED = "io.herald.alarms.notified", "io.herald.alarms.tested"
SUBJECT_CHARS_MAX = 160  # bound: characters of a mail's subject; it is shortened
RAISED, RESOLVED = "raised", "resolved"


@dataclass(frozen=True, slots=True)
class ContactPointMessage:
    """A message to one contact point."""

    id: str
    kind: str
    at: datetime
    data: NotificationData


def message_of(row: ContactPoint, found: PendingNotification, at: datetime) -> ContactPointMessage:
    """Make the message about these alarms."""
    alarms = [*((one, RAISED) for one in found.raised), *((one, RESOLVED) for one in found.resolved)]
    counted = [(len(found.raised), RAISED), (len(found.resolved), RESOLVED)]
    text = ", ".join(f"{_alarms(count)} {status}" for count, status in counted if count)
    if len(alarms) == 1:
        text = f"{_status(*alarms[0])}: {alarms[0][0].detail}"
    digest = hashlib.sha256(row.id.encode() + b"".join(b" %d %b" % (one.id, how.encode()) for one, how in alarms))
    data = _data(row, text, [_notified(*one) for one in alarms[:LISTED_MAX]], max(0, len(alarms) - LISTED_MAX))
    return ContactPointMessage(f"msg_{digest.hexdigest()[:32]}", NOTIFIED, at, data)


def message_of_test(row: ContactPoint, by: str, at: datetime) -> ContactPointMessage:
    """Make a message that tests a contact point."""
    digest = hashlib.sha256(f"{row.id} {at.timestamp()}".encode()).hexdigest()[:32]
    return ContactPointMessage(
        f"msg_{digest}", TESTED, at, _data(row, f"Test of the contact point {row.name} by {by}.", [], 0)
    )


def webhook_request(message: ContactPointMessage, secret: str, now: int) -> PushRequest:
    """Make the signed request of a message.

    Args:
        now: Unix seconds of this attempt.
    """
    domain = config().domain
    event = {
        "specversion": "1.0",
        "id": message.id,
        "source": f"herald://{domain}/alarms",
        "type": message.kind,
        "time": timestamp(message.at),
        "datacontenttype": "application/json",
        "data": message.data,
    }
    body = msgspec.json.encode(event)
    return PushRequest(
        "POST",
        (
            ("Content-Type", STRUCTURED_TYPE),
            ("webhook-id", message.id),
            ("webhook-timestamp", str(now)),
            ("webhook-signature", signature_field(message.id, now, body, [secret_parse(secret)], None)),
            ("WebHook-Request-Origin", domain),
        ),
        body,
    )


def mail_text(message: ContactPointMessage) -> tuple[str, str]:
    """Return subject and body of a mail."""
    data = message.data
    subject = " ".join(f"[Herald {data.domain}] {data.text}".split())
    if len(subject) > SUBJECT_CHARS_MAX:
        subject = subject[: SUBJECT_CHARS_MAX - 1] + "…"
    lines = [data.text, ""]
    for one in data.alarms:
        ended = one.cleared
        lines += [f"{one.status.upper()}  {one.severity}  {one.kind}", f"  {one.detail}", f"  since {one.since}"]
        lines += [f"  resolved {ended.at}: {ended.why}"] if ended is not None else [f"  what to do: {one.runbook}"]
        lines += [f"  {one.url}", ""]
    if data.more:
        lines += [f"and {data.more} more.", ""]
    lines += [f"All alarms: {data.url}", f"Sent by {data.domain} to its contact point {data.contact_point!r}."]
    return subject, "\n".join(lines) + "\n"


def _data(row: ContactPoint, text: str, alarms: Sequence[NotifiedAlarm], more: int) -> NotificationData:
    settings = config()
    return NotificationData(settings.domain, row.name, text, list(alarms), more, f"{settings.base_url}/alarms")


def _notified(row: Alarm, status: str) -> NotifiedAlarm:
    base = config().base_url
    shown = alarm_answer(row)
    return NotifiedAlarm.of(
        shown, status=status, url=f"{base}{row.link or '/alarms'}", runbook=f"{base}/docs/alarms#{row.kind}"
    )


def _status(row: Alarm, status: str) -> str:
    return row.severity.capitalize() if status == RAISED else "Resolved"


def _alarms(count: int) -> str:
    return "1 alarm" if count == 1 else f"{count:,} alarms"
