"""A rendezvous point that is fed from a WebSub hub: an intake is the callback, and the subscription is renewed before its lease ends.

    discover -> intake -> subscribe -> the hub verifies at the intake -> renew ... renew -> unsubscribe -> intake deleted

The hub sends content to the domain, not to this program: what is published while it does not run is missed only once the lease ends.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from typing import Any

import httpx

from herald.client import Client
from herald.websub import TIMEOUT_S, HubRefused, HubTopic, ask_hub, discover

VERIFIED_WITHIN_S = 60.0
"""Longest wait for the hub's verification or denial."""
ENDED_WITHIN_S = 10.0
LOOK_S = 0.25
RENEW_AT = 0.7
"""Share of a lease after which it is renewed."""
AGAIN_S = 30.0
"""Pause after a failed renewal; at most a tenth of the lease."""
SECRET_BYTES = 32


class WebSubBridge:
    """One topic of a foreign hub, published at one RP.

    Args:
        reference: id or name of the RP.
        report: called with a state and a sentence: `subscribed`, `failed`, `ended`.
        lease_s: requested lease; None for the hub's.
    """

    def __init__(
        self, client: Client, reference: str, report: Callable[[str, str], None], *, lease_s: int | None = None
    ) -> None:
        self._client, self._reference, self._report, self._lease_s = client, reference, report, lease_s
        self._secret = secrets.token_hex(SECRET_BYTES)

    async def run(self, url: str, stop: asyncio.Event) -> None:
        """Feed the RP from the topic of an address until `stop`. Raises HubRefused if the first subscription fails, HeraldError."""
        async with httpx.AsyncClient(timeout=TIMEOUT_S) as http:
            try:
                to = await discover(http, url)
            except httpx.HTTPError as error:
                raise HubRefused(f"{url} cannot be read: {error or type(error).__name__}.") from None
            made = await self._client.intakes.create(
                self._reference, format="websub", source=to.topic, secret=self._secret, title=f"WebSub {to.hub}"[:100]
            )
            try:
                await self._keep(http, to, str(made["url"]), stop)
            finally:
                await self._client.intakes.delete(str(made["id"]))

    async def _keep(self, http: httpx.AsyncClient, to: HubTopic, callback: str, stop: asyncio.Event) -> None:
        lease_s = await self._first(http, to, callback, stop)
        if not lease_s:
            return
        while not await _stopped(stop, lease_s * RENEW_AT):
            until = time.monotonic() + lease_s * (1 - RENEW_AT)
            while not stop.is_set():
                try:
                    lease_s = await self._subscribe(http, to, callback)
                    break
                except (HubRefused, httpx.HTTPError) as error:
                    left = "" if time.monotonic() < until else " The lease is over: content is missed."
                    self._report("failed", f"The subscription was not renewed: {error}{left}")
                    await _stopped(stop, min(AGAIN_S, lease_s / 10))
        try:
            before = await _note(http, callback)
            await ask_hub(http, to, "unsubscribe", callback)
            await _noted(http, callback, "ended", before, ENDED_WITHIN_S)
        except (HubRefused, httpx.HTTPError) as error:
            self._report("failed", f"The subscription was not ended, its lease will: {error}")
            return
        self._report("ended", f"ended the subscription of {to.topic}")

    async def _first(self, http: httpx.AsyncClient, to: HubTopic, callback: str, stop: asyncio.Event) -> float:
        """Subscribe for the first time, unless stopped meanwhile: then there is nothing to keep."""
        subscribing, stopping = (
            asyncio.create_task(self._subscribe(http, to, callback)),
            asyncio.create_task(stop.wait()),
        )
        try:
            await asyncio.wait((subscribing, stopping), return_when=asyncio.FIRST_COMPLETED)
            return await subscribing if subscribing.done() else 0.0
        except httpx.HTTPError as error:
            raise HubRefused(f"The intake cannot be read: {error or type(error).__name__}.") from None
        finally:
            subscribing.cancel()
            stopping.cancel()

    async def _subscribe(self, http: httpx.AsyncClient, to: HubTopic, callback: str) -> float:
        """Subscribe, or renew. Returns the granted lease, seconds."""
        before = await _note(http, callback)
        try:
            await ask_hub(http, to, "subscribe", callback, secret=self._secret, lease_s=self._lease_s)
        except httpx.HTTPError as error:
            raise HubRefused(f"The hub {to.hub} cannot be reached: {error or type(error).__name__}.") from None
        note = await _noted(http, callback, "subscribed", before, VERIFIED_WITHIN_S)
        self._report("subscribed", f"subscribed to {to.topic} at {to.hub} for {note['lease_s']} s")
        return max(1.0, float(note["lease_s"]))


async def _note(http: httpx.AsyncClient, callback: str) -> dict[str, Any]:
    """Return what the hub stated last at the intake; empty if the domain does not answer."""
    answer = await http.get(callback)
    found: dict[str, Any] = answer.json() if answer.is_success else {}
    return found


async def _noted(
    http: httpx.AsyncClient, callback: str, state: str, before: dict[str, Any], within_s: float
) -> dict[str, Any]:
    """Wait until the hub has stated this at the intake. Raises HubRefused for a denial, and if it does not in time.

    Args:
        before: what it had stated before it was asked.
    """
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        note = await _note(http, callback)
        if note.get("at", 0) > before.get("at", 0):
            if note.get("state") == "denied":
                raise HubRefused(f"The hub denied the subscription: {note.get('reason') or 'without a reason'}.")
            if note.get("state") == state:
                return note
        await asyncio.sleep(LOOK_S)
    raise HubRefused(
        f"The hub did not verify the subscription within {within_s:g} s. It must be able to reach {callback.rpartition('/')[0]}/."
    )


async def _stopped(stop: asyncio.Event, within_s: float) -> bool:
    try:
        async with asyncio.timeout(within_s):
            await stop.wait()
    except TimeoutError:
        return False
    return True
