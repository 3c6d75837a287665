"""Warnings to the address that an owner stated, when the domain pauses an endpoint or the endpoint ends.

    an endpoint is paused -> stored as due with its state -> the address consents to a challenge -> the signed warning

They are stored, so that a crash loses none; each attempt asks for consent first, within the bound of such requests, so that nobody
has this domain send warnings to an address that does not want them. Requests are signed as deliveries are, and carry neither the
custom headers nor the client certificate, which are the endpoint's.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time

from eventing.conf import config
from eventing.core.errors import ApplicationError
from eventing.sql.threads import in_database
from eventing.store.push_attempts import PushAttempt
from eventing.subscriptions.push.modes import PushRequest, PushTarget, StoredEvent
from eventing.subscriptions.push.process.consent_budget import ConsentBudget
from eventing.subscriptions.push.process.recorder import Recorder
from eventing.subscriptions.push.rules.addresses import endpoint_url, ports_parse
from eventing.subscriptions.push.rules.options import CHALLENGE
from eventing.subscriptions.push.rules.signatures import secret_parse, signature_key
from eventing.subscriptions.push.rules.verdicts import EXCERPT_BYTES_MAX, AttemptVerdict, PushAnswer
from eventing.subscriptions.push.services.vault import SecretsNotOpened, signing_master, unseal
from eventing.subscriptions.push.services.warnings import OwnerWarning, warning_done, warning_failed, warnings_due
from eventing.subscriptions.push.webhook.mode import WARNING_KIND, WebhookMode, made_event
from eventing.subscriptions.push.wire.client import PushClient

LOOK_S = 10.0
AT_ONCE_MAX = 16  # bound: warnings that are sent at once; the others wait
_MODE = WebhookMode()
log = logging.getLogger(__name__)


class OwnerWarnings:
    """The warnings of one deliverer."""

    def __init__(self, client: PushClient, recorder: Recorder, budget: ConsentBudget) -> None:
        self._client = client
        self._recorder = recorder
        self._budget = budget

    async def run(self) -> None:
        """Send warnings as they become due, until cancelled."""
        while True:
            try:
                due = await in_database(warnings_due)([], AT_ONCE_MAX)
                await asyncio.gather(*[self._warn(one) for one in due])
            except Exception:
                log.exception("Warnings could not be sent; they are tried again")
                due = []
            if len(due) == AT_ONCE_MAX:
                continue
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._recorder.paused.wait()
            except TimeoutError:
                pass
            self._recorder.paused.clear()

    async def _warn(self, warning: OwnerWarning) -> None:
        try:
            target = _target(warning)
        except (SecretsNotOpened, ApplicationError) as error:
            log.warning("push: the owner of %s cannot be warned: %s", warning.subscription, type(error).__name__)
            await in_database(warning_failed)(warning)
            return
        delivered = self._budget.takes(target.url.host, warning.owner) and await self._sent(target, warning)
        await in_database(warning_done if delivered else warning_failed)(warning)

    async def _sent(self, target: PushTarget, warning: OwnerWarning) -> bool:
        token = secrets.token_urlsafe(24)
        asked, _ = await self._request(target, warning, _MODE.consent_request(target, token, int(time.time())))
        if not _MODE.consents(target, token, asked):
            return False
        event = made_event(target, WARNING_KIND, f"{warning.subscription}-{warning.at}", warning.data)
        stored = StoredEvent(f"warning_{warning.subscription}", warning.at, event)
        _, verdict = await self._request(target, warning, _MODE.request(target, [stored], int(time.time())))
        return verdict is AttemptVerdict.DELIVERED

    async def _request(
        self, target: PushTarget, warning: OwnerWarning, request: PushRequest
    ) -> tuple[PushAnswer, AttemptVerdict]:
        began = time.time()
        answer = await self._client.send(target.url, request)
        verdict = _MODE.verdict(answer)
        message = next((value for name, value in request.headers if name == "webhook-id"), "")
        excerpt = answer.excerpt[:EXCERPT_BYTES_MAX]
        attempt = PushAttempt(
            round(began * 1000), "warning", "", 0, 0, warning.number + 1, verdict.value, answer.reason, answer.took_ms,
            answer.address, excerpt, message,
        )  # fmt: skip
        self._recorder.attempted(warning.rp, warning.subscription, attempt)
        return answer, verdict


def _target(warning: OwnerWarning) -> PushTarget:
    """Return the address to warn. Raises SecretsNotOpened, InvalidRequest."""
    settings, held, signature = config(), unseal(warning.subscription, warning.sealed), warning.signature
    url = endpoint_url(
        held.warn_url, ports=ports_parse(settings.push_ports), private=settings.push_private, member="deliver.warn_url"
    )
    return PushTarget(
        subscription=warning.subscription,
        rp=warning.rp,
        origin=settings.domain,
        url=url,
        form="structured",
        secrets=tuple(map(secret_parse, held.signing())) if signature != "v1a" else (),
        key=signature_key(signing_master(), warning.subscription) if signature != "v1" else None,
        verification=CHALLENGE,
    )
