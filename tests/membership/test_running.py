"""The process of the overlay: one at a time, with what it knew before, and over in order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection

from demo.harness.servers import wait_for
from eventing.conf import config
from eventing.core.ids import DOMAIN_ADMIN
from eventing.core.principals import Principal
from eventing.membership.models import DirectoryDomain, OverlayLink, OverlayMembership
from eventing.membership.process.running import LeaseLost, OverlayRun, OverlayRunner
from eventing.membership.services.directory import directory_store
from eventing.membership.services.joining import overlay_found, overlay_leave
from eventing.membership.services.sponsorships import sponsorship_grant
from eventing.membership.wire import codec
from eventing.overlay.directory_messages import Records, Want
from eventing.overlay.directory_records import DomainRecord
from eventing.overlay.links import Disconnect, Neighbor, NeighborReply, Reason
from eventing.overlay.liveness import Beat
from eventing.store.client import client
from eventing.store.keys import overlay_outbox_key
from eventing.store.overlay_pictures import state_stored
from eventing.store.overlay_queues import (
    OverlayNotRunning,
    overlay_again,
    overlay_lease,
    overlay_receive,
    overlay_running,
)
from tests.membership.signers import Signer
from tests.planes import events_at

WITHIN_S = 60.0


class Running:
    """A run on a thread of its own, as in the forwarder."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self.outcome: list[bool | Exception] = []
        self.thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> Running:
        before = OverlayMembership.objects.get().version
        self.thread.start()
        wait_for(lambda: OverlayMembership.objects.get().version > before, WITHIN_S, about="it has issued a record")
        assert overlay_running()
        return self

    def stop(self) -> None:
        self.stopping.set()
        if self.thread.is_alive():
            overlay_again()
        self.thread.join(WITHIN_S)
        assert not self.thread.is_alive()

    def _run(self) -> None:
        try:
            self.outcome.append(OverlayRun(self.stopping.is_set).run())
        except LeaseLost as error:
            self.outcome.append(error)
        finally:
            connection.close()


@pytest.fixture
def start(planes: None, root: Principal) -> Iterator[Callable[[], Running]]:
    """Founds an overlay, and starts runs that end with the test."""
    overlay_found(principal=root)
    made: list[Running] = []

    def begin() -> Running:
        made.append(Running())
        return made[-1].start()

    yield begin
    for one in made:
        one.stop()


def member(name: str = "new.example") -> Signer:
    """A domain that this one sponsored, and that only calls out."""
    signer = Signer(name, at=time.time())
    signer.grant = sponsorship_grant(newcomer=name, key=signer.x, fingerprint=signer.fingerprint)
    return signer


def exchange(sender: Signer, *messages: object) -> list[object]:
    """Hand messages to the process as a gateway does; return what waits for the sender."""
    waiting = overlay_receive(sender.name, codec.encode(messages))
    return codec.decode(b"".join([b"\xdc", len(waiting).to_bytes(2, "big"), *waiting]))


def answer(sender: Signer, kind: type) -> object:
    """The next message of a kind for a domain that polls."""
    return wait_for(
        lambda: next((one for one in exchange(sender) if type(one) is kind), None),
        WITHIN_S,
        every_s=0.1,
        about=str(kind),
    )


def link_with(sender: Signer) -> None:
    exchange(sender, Records((sender.record(url=""),)), Neighbor())
    assert answer(sender, NeighborReply) == NeighborReply(True)
    wait_for(lambda: OverlayLink.objects.filter(peer=sender.name, up=True).exists(), WITHIN_S)


def told_of_overlay(last: str) -> dict[str, Any]:
    """What was told of the overlay, by type without the prefix; empty before an event of the type `last`."""
    told = {one["type"].removeprefix("io.herald.overlay."): one["data"] for one in events_at(DOMAIN_ADMIN)}
    return told if last in told else {}


def test_a_link_is_made_told_and_stored_and_ends_with_its_reason(start: Callable[[], Running]) -> None:
    start()
    new = member()
    link_with(new)
    wait_for(lambda: DirectoryDomain.objects.filter(name=new.name, held=True).exists(), WITHIN_S)
    exchange(new, Disconnect(Reason.LEAVING))
    wait_for(lambda: OverlayLink.objects.filter(peer=new.name, up=False).exists(), WITHIN_S)
    told = wait_for(
        lambda: told_of_overlay("link.dropped"), WITHIN_S, about="the outbox is drained after the row is stored"
    )
    assert told["link.made"]["reason"] == "accepted"
    assert told["link.dropped"]["reason"] == "leaving"
    assert told["directory.changed"]["admitted"] == [new.name]


def test_a_domain_that_the_directory_refuses_gets_no_link(start: Callable[[], Running]) -> None:
    start()
    stranger, new = Signer("stranger.example", at=time.time()), member()
    exchange(stranger, Records((stranger.record(url=""),)), Neighbor())
    link_with(new)
    assert exchange(stranger) == []
    assert [link.peer for link in OverlayLink.objects.all()] == [new.name]


def test_one_process_runs_the_overlay_at_a_time(start: Callable[[], Running]) -> None:
    start()
    assert OverlayRun(lambda: False).run() is False


def test_a_process_whose_lease_was_taken_over_stops(start: Callable[[], Running]) -> None:
    first = start()
    from eventing.store.keys import OVERLAY_TURN_KEY

    client().set(OVERLAY_TURN_KEY, "another")
    wait_for(lambda: first.outcome, WITHIN_S, about="it finds out when it renews the lease")
    assert isinstance(first.outcome[0], LeaseLost)
    assert client().get(OVERLAY_TURN_KEY) == b"another"


def test_a_restart_remembers_the_directory_and_issues_a_newer_record(start: Callable[[], Running]) -> None:
    new = member()
    directory_store([new.record()], now=datetime.now(UTC))
    start().stop()
    version = OverlayMembership.objects.get().version
    OverlayMembership.objects.update(version=version + 1000)  # the clock was set back since
    second = start()
    own = answer_record(new)
    assert own.version > version + 1000
    second.stop()


def answer_record(sender: Signer) -> DomainRecord:
    """The domain's own record, on request."""
    exchange(sender, Records((sender.record(int(sender.at) + 1, url=""),)), Want((config().domain,)))
    found = answer(sender, Records)
    assert isinstance(found, Records)
    return found.records[0]


def test_leaving_ends_the_links_and_the_process(start: Callable[[], Running], root: Principal) -> None:
    running = start()
    new = member()
    link_with(new)
    overlay_leave(principal=root)
    overlay_again()
    running.thread.join(WITHIN_S)
    assert running.outcome == [False]
    assert not overlay_running()
    with pytest.raises(OverlayNotRunning):
        exchange(new, Beat())


def test_joining_again_begins_a_run_with_what_is_trusted_now(start: Callable[[], Running]) -> None:
    running = start()
    overlay_again()
    running.thread.join(WITHIN_S)
    assert running.outcome == [True], "another run follows"


def test_a_domain_that_left_and_joined_again_at_once_ends_its_links_and_takes_nothing_over(
    start: Callable[[], Running], root: Principal
) -> None:
    running = start()
    new = member()
    link_with(new)
    overlay_leave(principal=root)
    overlay_found(principal=root)
    overlay_again()  # the process learns of both at once
    running.thread.join(WITHIN_S)
    assert running.outcome == [True], "another run follows"
    assert state_stored() is None, "scores and rows were those of the former membership"
    waiting: Any = client().lrange(overlay_outbox_key(new.name), 0, -1)
    assert codec.message_bytes(Disconnect(Reason.LEAVING)) in waiting


@pytest.mark.usefixtures("planes")
def test_a_domain_that_takes_part_in_no_overlay_starts_no_thread() -> None:
    assert not OverlayRunner().wake(lambda: False)
    assert not overlay_running()


def test_a_message_that_no_machine_understands_ends_nothing(
    start: Callable[[], Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    from eventing.overlay.links import Links

    start()
    monkeypatch.setattr(Links, "_neighbor", lambda *_: 1 / 0)
    monkeypatch.setitem(Links.handle.__globals__["_HANDLERS"], Neighbor, lambda *_: 1 / 0)
    new = member()
    exchange(new, Neighbor())
    exchange(new, Records((new.record(url=""),)))
    wait_for(lambda: DirectoryDomain.objects.filter(name=new.name).exists(), WITHIN_S)


def test_the_lease_is_released_at_the_end(start: Callable[[], Running]) -> None:
    start().stop()
    assert overlay_lease("next", 1000).acquire()
