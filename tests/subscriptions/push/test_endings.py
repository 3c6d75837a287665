"""Messages about ended subscriptions: one that a deliverer had begun to send is sent by the next one, one that is done is not,
and none is sent to a callback that is subscribed again."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import override_settings

from demo.harness.servers import wait_for
from eventing.conf import config
from eventing.core.errors import Unavailable
from eventing.core.ids import DOMAIN_ADMIN
from eventing.store.cancellation import cancel_and_wait
from eventing.store.client import client
from eventing.store.connection import async_client
from eventing.store.keys import PUSH_ENDINGS_KEY, PUSH_ENDINGS_TAKEN_KEY
from eventing.store.push_endings import PushEnding, endings_add
from eventing.subscriptions.models.subscription import Subscription
from eventing.subscriptions.push.process import endings
from eventing.subscriptions.push.process.endings import EndingSender
from eventing.subscriptions.push.services.unsettled import subscription_id
from eventing.subscriptions.push.services.vault import EndpointSecrets, seal
from eventing.subscriptions.push.websub.callbacks import denial_url
from eventing.subscriptions.push.websub.topics import topic_url
from eventing.subscriptions.push.wire.client import PushClient, PushNetwork
from eventing.subscriptions.push.wire.tls import TlsContexts
from tests.subscriptions.push.receiver import Receiver, own_host

pytestmark = pytest.mark.django_db(transaction=True)

SUBSCRIPTION, RP, REASON = "sub_ended", "a" * 26, "The rendezvous point has ended."
NETWORK = PushNetwork(private=True, own_port=1, proxy="", tls=TlsContexts())


@pytest.fixture
def receiver(redis_url: str) -> Iterator[Receiver]:
    """A callback on this machine, to which the domain may send; and nothing in the queue."""
    settings = dataclasses.replace(config(), push_private=True, push_ports="1-65535")
    with override_settings(HERALD=settings), Receiver(host=own_host()) as running:
        yield running
    client().delete(PUSH_ENDINGS_KEY, PUSH_ENDINGS_TAKEN_KEY)


def target(path: str = "/cb") -> str:
    return denial_url(path, topic_url(config().base_url, RP), REASON)


def ended(receiver: Receiver) -> PushEnding:
    sealed = seal(SUBSCRIPTION, EndpointSecrets(url=receiver.url("/cb")))
    return PushEnding(SUBSCRIPTION, sealed, "", REASON, "websub", RP)


async def deliverer(until: Callable[[], bool]) -> None:
    """Run a sender until something is so; then it ends as by a kill, in the middle of its requests."""
    queue, sending = async_client(config().effective_redis_url), PushClient(NETWORK)
    task = asyncio.create_task(EndingSender(queue, sending, lambda: True).run())
    try:
        await asyncio.to_thread(wait_for, until)
    finally:
        await cancel_and_wait([task])
        sending.close()
        await queue.aclose()


async def test_a_message_under_way_at_a_kill_is_sent_by_the_next_deliverer(receiver: Receiver) -> None:
    endings_add([ended(receiver)])
    receiver.answer[target()] = "hang"
    await deliverer(lambda: len(receiver.received) == 1)
    del receiver.answer[target()]
    await deliverer(lambda: not client().llen(PUSH_ENDINGS_TAKEN_KEY) and len(receiver.received) == 2)
    assert [one.path for one in receiver.received] == [target()] * 2


async def test_a_database_that_is_away_costs_an_attempt_and_not_the_message(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter([Unavailable("away"), False])

    def exists(*_: object) -> bool:
        answer = next(looks)
        if isinstance(answer, Unavailable):
            raise answer
        return bool(answer)

    monkeypatch.setattr(endings, "websub_exists", exists)
    endings_add([ended(receiver)])
    await deliverer(lambda: len(receiver.received) == 1)


async def test_a_message_of_another_version_is_discarded_and_holds_up_no_other(receiver: Receiver) -> None:
    client().lpush(PUSH_ENDINGS_KEY, b"\xc1")
    endings_add([ended(receiver)])
    await deliverer(lambda: len(receiver.received) == 1 and not client().llen(PUSH_ENDINGS_TAKEN_KEY))
    assert client().llen(PUSH_ENDINGS_KEY) == 0


def subscribed_again(callback: str) -> None:
    until = datetime.now(tz=UTC) + timedelta(hours=1)
    Subscription.objects.create(
        id=subscription_id(RP, callback),
        at=DOMAIN_ADMIN,
        owner="#127.0.0.1",
        deliver={"mode": "websub"},
        start="",
        granted_s=3600,
        max_events=10,
        max_bytes=1000,
        warn_at=until,
        expires_at=until,
        created_at=until - timedelta(hours=1),
    )
    connection.close()  # of a thread that is over


@pytest.mark.parametrize("again", [False, True])
async def test_a_callback_that_is_subscribed_again_gets_no_denial(receiver: Receiver, again: bool) -> None:
    subscription = ended(receiver)
    if again:
        await asyncio.to_thread(subscribed_again, receiver.url("/cb"))
    endings_add([subscription])
    await deliverer(lambda: not client().llen(PUSH_ENDINGS_KEY) and not client().llen(PUSH_ENDINGS_TAKEN_KEY))
    assert len(receiver.received) == (0 if again else 1)
