"""Sending messages about alarms, by a periodic task: never within the transaction that raises an alarm.

    a contact point is due, and alarms changed since its last message
    -> the task claims it for CLAIM_S -> one message about all of these alarms -> accepted: the alarms are noted, next after group_s
                                                                              -> failed: next after a growing pause

What is sent follows from what is so (notification/selectors.py: pending), there is no queue: an outage of a contact point
accumulates nothing, alarms that began and ended meanwhile are not sent afterwards, and a message is repeated only if a crash
happens between its acceptance and the note. A contact point that hangs delays no other one.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from smtplib import SMTPException

from django.core.mail import EmailMessage, get_connection
from django.db import transaction
from django.utils import timezone

from eventing.access.rules.permission import require_operator
from eventing.conf import config
from eventing.core.errors import ApplicationError
from eventing.core.principals import Principal
from eventing.operations.notification.messages import (
    ContactPointMessage,
    mail_text,
    message_of,
    message_of_test,
    webhook_request,
)
from eventing.operations.notification.models import REASON_CHARS_MAX, AlarmNotice, ContactPoint
from eventing.operations.notification.rules.contact_points import retry_s
from eventing.operations.notification.selectors import (
    PendingNotification,
    contact_point_get,
    contact_points_due,
    pending,
)
from eventing.operations.notification.services.vault import SealedTarget, TargetNotOpened, unseal
from eventing.operations.notification.shapes import ContactPointTestedAnswer
from eventing.outbox.services import change
from eventing.subscriptions.push.rules.addresses import endpoint_url, ports_parse
from eventing.subscriptions.push.rules.verdicts import AttemptVerdict, judged
from eventing.subscriptions.push.wire.client import PushClient, PushNetwork
from eventing.subscriptions.push.wire.tls import TlsContexts

GATHER_S = 2.0  # a message waits so long for alarms that are raised together
CLAIM_S = 90.0  # bound: seconds for which a task that died keeps others from sending; another one sends then
ATTEMPT_S = 12.0  # bound: seconds of one attempt; it fails
SMTP_TIMEOUT_S = 10.0
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NotificationOutcome:
    """Outcome of an attempt: `reason` is a short code or sentence."""

    delivered: bool
    reason: str
    took_ms: int


def notices_send(*, now: datetime | None = None) -> int:
    """Send what is due to all contact points at once. Returns how many messages were accepted. Safe to run side by side."""
    now = now or timezone.now()
    claimed: list[tuple[ContactPoint, PendingNotification, ContactPointMessage]] = []
    for row in contact_points_due(now):
        found = pending(row, now)
        since = found.since
        if since is None or since > now - timedelta(seconds=GATHER_S):
            continue
        if ContactPoint.objects.filter(id=row.id, next_at=row.next_at).update(next_at=now + timedelta(seconds=CLAIM_S)):
            claimed.append((row, found, message_of(row, found, now)))
    if not claimed:
        return 0
    outcomes = asyncio.run(_attempt_all([(row, message) for row, _, message in claimed]))
    for (row, found, _), outcome in zip(claimed, outcomes, strict=True):
        _note(row, found, outcome, now)
    return sum(outcome.delivered for outcome in outcomes)


def contact_point_test(
    *, contact_point: str, principal: Principal, now: datetime | None = None
) -> ContactPointTestedAnswer:
    """Send a test message at once, and return the outcome. For operators. Raises Forbidden, NotFound."""
    now = now or timezone.now()
    require_operator(principal)
    row = contact_point_get(contact_point)
    with change(now) as outbox:
        outbox.act("contact-point.test", principal, "contact-point", row.id, name=row.name)
    (outcome,) = asyncio.run(_attempt_all([(row, message_of_test(row, principal.identity, now))]))
    if outcome.delivered:  # what waits need not wait for the next pause
        ContactPoint.objects.filter(id=row.id).update(failures=0, failure="", delivered_at=now, next_at=now)
    return ContactPointTestedAnswer(outcome.delivered, outcome.reason, outcome.took_ms)


async def _attempt_all(messages: Sequence[tuple[ContactPoint, ContactPointMessage]]) -> list[NotificationOutcome]:
    return await asyncio.gather(*[_attempt(row, message) for row, message in messages])


async def _attempt(row: ContactPoint, message: ContactPointMessage) -> NotificationOutcome:
    began = time.perf_counter()
    try:
        target = unseal(row.id, bytes(row.sealed))
        async with asyncio.timeout(ATTEMPT_S):
            send = _send_webhook(target, message) if target.url else asyncio.to_thread(_send_mail, target, message)
            delivered, reason = await send
    except TargetNotOpened:
        delivered, reason = False, "sealed with another HERALD_SECRET_KEY: state the target again"
    except TimeoutError:
        delivered, reason = False, "timeout"
    except (OSError, SMTPException, ValueError, ApplicationError) as error:
        log.warning("The contact point %s cannot be notified: %s", row.name, type(error).__name__)
        delivered, reason = False, f"{type(error).__name__}: {error}"
    return NotificationOutcome(delivered, reason[:REASON_CHARS_MAX], round((time.perf_counter() - began) * 1000))


async def _send_webhook(target: SealedTarget, message: ContactPointMessage) -> tuple[bool, str]:
    settings = config()
    url = endpoint_url(target.url, ports=ports_parse(settings.push_ports), private=settings.push_private, member="url")
    network = PushNetwork(settings.push_private, settings.port, settings.push_proxy, TlsContexts(settings.push_ca_file))
    client = PushClient(network)
    try:
        answer = await client.send(url, webhook_request(message, target.secret, int(time.time())))
    finally:
        client.close()
    return judged(answer) is AttemptVerdict.DELIVERED, answer.reason


def _send_mail(target: SealedTarget, message: ContactPointMessage) -> tuple[bool, str]:
    settings = config()
    connection = get_connection(
        "django.core.mail.backends.smtp.EmailBackend",
        host=settings.smtp_host,
        port=settings.smtp_port,
        username=settings.smtp_user,
        password=settings.smtp_password,
        use_tls=settings.smtp_security == "starttls",
        use_ssl=settings.smtp_security == "tls",
        timeout=SMTP_TIMEOUT_S,
    )
    subject, body = mail_text(message)
    headers = {"Message-ID": f"<{message.id}@{settings.domain}>", "Auto-Submitted": "auto-generated"}
    mail = EmailMessage(subject, body, settings.mail_from, list(target.to), connection=connection, headers=headers)
    return mail.send() == 1, "accepted"


def _note(row: ContactPoint, found: PendingNotification, outcome: NotificationOutcome, now: datetime) -> None:
    """Note the outcome; the alarms of a message that was accepted are not notified again."""
    with transaction.atomic():
        held = ContactPoint.objects.select_for_update().filter(id=row.id).first()
        if held is None:
            return  # deleted meanwhile
        if outcome.delivered:
            notices = [AlarmNotice(contact_point=held, alarm=one) for one in found.raised]
            AlarmNotice.objects.bulk_create(notices, ignore_conflicts=True)
            AlarmNotice.objects.filter(contact_point=held, alarm__in=found.resolved).update(resolved=True)
            held.failures, held.failure, held.delivered_at = 0, "", now
            held.next_at = now + timedelta(seconds=held.group_s)
        else:
            held.failures, held.failure = held.failures + 1, outcome.reason
            held.next_at = now + timedelta(seconds=retry_s(held.failures, random.random()))  # noqa: S311 - no secret
        held.save(update_fields=["failures", "failure", "delivered_at", "next_at"])
