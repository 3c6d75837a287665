"""Looks at ways that are cut: what is asked, how often, and how many at a time; against servers of the test's own."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from django.utils import timezone

from demo.harness.servers import wait_for
from eventing.peering.models import PeerDelivery
from eventing.peering.wire import client
from eventing.peering.wire.client import NO_ANSWER, PeerError
from eventing.replication.forwarding import outbound, probing, sweeping, wakeups
from eventing.replication.forwarding.outbound import forward
from eventing.replication.forwarding.probing import PeerRoute, Prober
from tests.peering.other_domain import OtherDomain
from tests.replication.answering import FakePeer, delivery, own, shared

ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"


class Server:
    """Counts connections and what they ask; answers with `says`, or never."""

    def __init__(self, says: bytes = b"") -> None:
        self.says = says
        self.asked: list[bytes] = []
        self.open = self.open_max = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Refuse connections from now on."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        self.open += 1
        self.open_max = max(self.open, self.open_max)
        with connection:
            try:
                self.asked.append(connection.recv(4096))
                if self.says:
                    connection.sendall(self.says)
                while connection.recv(4096):
                    pass
            except OSError:
                pass
        self.open -= 1


@pytest.fixture
def new_server() -> Iterator[Callable[..., Server]]:
    made: list[Server] = []

    def make(says: bytes = b"") -> Server:
        made.append(Server(says))
        return made[-1]

    yield make
    for server in made:
        server.close()


@pytest.fixture
def prober(monkeypatch: pytest.MonkeyPatch) -> Iterator[Prober]:
    """One that looks ten times as often."""
    monkeypatch.setattr(probing, "PROBE_S", 0.2)
    monkeypatch.setattr(probing, "TICK_S", 0.02)
    made = Prober()
    yield made
    made.watch({})


@pytest.fixture
def alive(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Peers that gave a sign of life."""
    seen: list[str] = []
    monkeypatch.setattr(wakeups, "probe", seen.append)
    return seen


def answers(url: str, within_s: float = 0.5) -> bool:
    with ThreadPoolExecutor(1) as resolver:
        return asyncio.run(client.answers(url, within_s, resolver))


@pytest.mark.usefixtures("shared_stores")
def test_a_way_is_whole_when_anything_answers_and_nothing_is_asked_but_for_a_sign_of_life(
    new_server: Callable[..., Server],
) -> None:
    there, mute = new_server(ANSWER), new_server()
    assert answers(there.url, within_s=60.0)
    assert there.asked[0].startswith(b"HEAD /livez HTTP/1.1\r\n")
    assert not answers(mute.url), "connected to, and swallowed"
    mute.close()
    assert not answers(mute.url), "refused"


@pytest.mark.usefixtures("shared_stores")
def test_addresses_that_are_not_called_are_not_looked_at(
    new_server: Callable[..., Server], configure: Callable[..., None]
) -> None:
    server = new_server(ANSWER)
    configure(public_url="https://a.example", allow_private_peers=False)
    assert not answers(server.url)
    assert not answers("ftp://127.0.0.1/")
    assert not answers("http://169.254.169.254/")
    assert server.asked == []


def test_a_cut_way_is_looked_at_evenly_and_one_that_lives_in_vain_ever_less() -> None:
    route = PeerRoute("http://b.example")

    def pause_s(alive: bool) -> float:
        route.probed(alive, 100.0)
        return route.due_at - 100.0

    assert [pause_s(False) for _ in range(5)] == [2.0] * 5
    assert [pause_s(True) for _ in range(8)] == [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]
    assert pause_s(False) == 2.0


def test_a_peer_that_is_back_is_tried_at_the_next_look_and_one_that_is_well_looked_at_no_more(
    prober: Prober, alive: list[str], new_server: Callable[..., Server]
) -> None:
    mute = new_server()
    prober.watch({"b.test": mute.url})
    wait_for(lambda: len(mute.asked) >= 3)
    assert alive == []
    mute.says = ANSWER
    wait_for(lambda: alive)
    prober.watch({})
    wait_for(lambda: not prober._running)


def test_many_peers_that_are_cut_off_are_looked_at_a_bounded_number_at_a_time(
    prober: Prober, alive: list[str], new_server: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "PROBES_AT_ONCE", 16)
    mute, there = new_server(), new_server(ANSWER)
    began = time.process_time()
    prober.watch({**{f"p{number}.test": mute.url for number in range(64)}, "there.test": there.url})
    wait_for(lambda: len(mute.asked) >= 3 * 64 and alive)
    assert mute.open_max <= 3 * 16, "with some whose end the server has not seen yet; 64 without a bound"
    assert time.process_time() - began < 10.0
    assert set(alive) == {"there.test"}


@pytest.mark.usefixtures("shared_stores")
def test_only_peers_without_any_answer_are_looked_at(
    peer: FakePeer, b: OtherDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched: list[list[str]] = []
    monkeypatch.setattr(probing, "watch", lambda cut_off: watched.append(list(cut_off)))
    rp = shared(b, 1)

    def watched_after(error: PeerError) -> list[str]:
        peer.fails.append(error)
        PeerDelivery.objects.update(next_try_at=timezone.now())
        wakeups.wake("b.test", [rp], anyway=True)
        forward("b.test")
        assert peer.fails == []
        sweeping.peers_sweep()
        return watched.pop()

    assert watched_after(PeerError("unreachable", "The answer is a redirect.")) == []
    assert watched_after(PeerError("unreachable", "Nothing.", code=NO_ANSWER)) == ["b.test"]
    assert watched_after(PeerError("busy", "Later.")) == []
    assert watched_after(PeerError("unreachable", "Nothing.", code=NO_ANSWER)) == ["b.test"]
    wakeups.probe("b.test")
    forward("b.test")
    assert peer.vectors[rp] == {own(rp): 1}
    sweeping.peers_sweep()
    assert watched.pop() == []


@pytest.mark.usefixtures("shared_stores")
def test_a_sign_of_life_during_a_request_has_another_one_tried_when_that_one_fails(
    peer: FakePeer, b: OtherDomain
) -> None:
    rp = shared(b, 1)
    peer.fails.append(PeerError("unreachable", "Nothing.", code=NO_ANSWER))
    wakeups.wake("b.test", [rp])
    wakeups.probe("b.test")
    forward("b.test")
    assert peer.vectors[rp] == {own(rp): 1}
    assert delivery().failures == 0


@pytest.mark.usefixtures("shared_stores")
def test_a_call_that_hangs_is_given_up_when_the_domain_answers_elsewhere(
    b: OtherDomain, new_server: Callable[..., Server]
) -> None:
    mute = new_server()
    waiting = client.begin(mute.url, "b.test", outbound.EXCHANGE, b"", 30.0)
    wait_for(lambda: mute.asked)
    client.give_up("b.test", begun_before=0.0)  # it is younger
    client.give_up("b.test", begun_before=time.monotonic())
    with pytest.raises(PeerError) as caught:
        waiting()
    assert (caught.value.kind, caught.value.code) == ("unreachable", NO_ANSWER)
