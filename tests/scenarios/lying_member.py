"""A domain of the overlay in the test's own process, with a record that its sponsor's signature admits, that says what a test wants.

    liar = LyingMember(network, "forger"); liar.sponsored_by("a")      # a peer of `a`, and in nobody's directory yet
    liar.link("b")                                                     # an overlay link that b accepted
    liar.tell("b", Records((liar.record_made(version=2**64 - 1),)))    # one signed request; what b leaves for it in the answer

It answers beats, probes, and requests for links and for its record, as any member does, until a test changes `reply`. It accepts
every link of a region, so it is an acquaintance of those that take part in the same rendezvous points.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import httpx

from demo.harness.network import Network
from demo.harness.servers import wait_for
from eventing.membership.rules.records import SponsorshipGrant, record_sign, sponsorship_sign
from eventing.membership.rules.rows import row_sign
from eventing.membership.wire import codec, messages
from eventing.overlay.directory_messages import Records, Want
from eventing.overlay.directory_records import EXPIRY_S, DomainRecord, Sponsorship
from eventing.overlay.gossip_object import SignedRow
from eventing.overlay.links import Neighbor, NeighborReply
from eventing.overlay.liveness import Alive, Beat, Probe
from eventing.peering.wire import signatures
from eventing.peering.wire.endpoints import OVERLAY, PREFIX, SPONSOR
from eventing.replication.joining.messages import DONE
from eventing.replication.regions.messages import LinkMessage, encode, link_message_read
from tests.scenarios.lying_peer import ANSWERED_WITHIN_S, LyingPeer, new_key

Reply = Callable[[str, Any], Sequence[Any]]
DAY_S = 86_400
LINKED_WITHIN_S = 60.0
ROW_LEASE_S = 1800
REGION = f"{PREFIX}region"


class Newcomer:
    """A domain that is a name, a key, and a sponsorship that any admitted domain may have signed. Nothing answers at its address.

    Attributes:
        record: its record, as it presents it.
        chain: the records of its sponsor, and so on.
    """

    record: DomainRecord
    chain: list[DomainRecord]

    def __init__(self, name: str, network: Network) -> None:
        self._network = network
        self.domain = f"{name}.test"
        self.key: Mapping[str, Any] = new_key()
        self.url = f"http://127.0.0.1:9/{name}"
        self.grant: SponsorshipGrant | None = None

    def record_made(self, version: int | None = None, **members: Any) -> DomainRecord:
        """A record of itself, signed; `members` instead of what is true."""
        now = time.time()
        given = None if self.grant is None else self.grant.sponsorship
        stated = {"issued_s": now, "expires_s": now + EXPIRY_S, "url": self.url, **members}
        made = DomainRecord(self.domain, int(now) if version is None else version, sponsorship=given, **stated)
        return record_sign(made, self.key, [], b"" if self.grant is None else self.grant.signature)

    def sponsor(self, newcomer: Newcomer, number: int, *, day: int | None = None) -> Newcomer:
        """Sign a sponsorship of another domain, whatever the quota says; the newcomer."""
        given = Sponsorship(self.domain, newcomer.domain, int(time.time() // DAY_S) if day is None else day, number)
        newcomer.grant = sponsorship_sign(given, str(newcomer.key["x"]), self.key)
        return newcomer

    def try_telling(self, to: str, *said: Any, known: bool = False) -> tuple[int, bytes]:
        """Send overlay messages in one request, with its records unless it is known there; the answer's status and body."""
        records = [] if known else [self.record, *self.chain]
        body = messages.request_encode([codec.message_bytes(one) for one in said], records)
        request = signatures.request_signed(
            f"{self._network[to].url}{OVERLAY}",
            body,
            origin=self.domain,
            destination=self._network[to].name,
            key=self.key,
            nonce=secrets.token_urlsafe(16),
            now=time.time(),
        )
        answer = httpx.post(
            request.url, content=body, headers=request.headers, timeout=ANSWERED_WITHIN_S, trust_env=False
        )
        return answer.status_code, answer.content


class LyingMember(LyingPeer, Newcomer):
    """A member of the overlay of which the test is the only process.

    Attributes:
        heard: what was said to it: (domain, message).
        reply: the messages with which it answers one.
        late_s: how long it takes to answer.
    """

    def __init__(self, network: Network, name: str) -> None:
        self.grant = None
        self.heard: list[tuple[str, Any]] = []
        self.reply: Reply = self.replied
        self.late_s = 0.0
        super().__init__(network, name)

    def sponsored_by(self, sponsor: str) -> LyingMember:
        """Become a peer of a domain, and have it sponsor this one."""
        self.peer(sponsor)
        body = messages.encode(messages.SponsorRequest(messages.VERSION, str(self.key["x"])))
        status, answer = self.post(sponsor, SPONSOR.rpartition("/")[2], body)
        assert status == 200, answer
        found = messages.sponsor_answer_read(answer)
        self.grant, self.chain = found.grant, found.chain
        self.record = self.record_made()
        return self

    def link(self, *to: str) -> LyingMember:
        """Request a link of each domain, and wait until it accepts."""
        for name in to:
            self.tell(name, Neighbor())
            wait_for(
                lambda name=name: (f"{name}.test", NeighborReply(True)) in self.heard,  # type: ignore[misc]
                LINKED_WITHIN_S,
                about=f"{name} accepts a link of {self.name}",
            )
        return self

    def tell(self, to: str, *said: Any) -> list[Any]:
        """Send messages in one request; those that wait for this domain. Fails when they are refused."""
        status, body = self.try_telling(to, *said)
        assert status == 200, f"{to} answered {status}: {body!r}"
        return codec.decode(messages.answer_read(body).messages)

    def row_made(self, name: str, payload: bytes) -> SignedRow:
        """Its row of a gossip object, of this second."""
        now = int(time.time())
        return row_sign(name, SignedRow(self.domain, now, now + ROW_LEASE_S, payload), self.key)

    def answer(self, path: str, body: bytes, sender: str) -> bytes:
        """As of LyingPeer; overlay messages are answered one by one, and whoever asks for sponsorship is sponsored."""
        if path == REGION:
            link = link_message_read(body)
            if link.kind == "ask":
                threading.Thread(target=self._accept, args=(sender, link.rp), daemon=True).start()
            return DONE
        if path == SPONSOR:
            asked = messages.sponsor_request_read(body)
            given = Sponsorship(self.domain, sender, int(time.time() // DAY_S), 0)
            grant = sponsorship_sign(given, asked.key, self.key)
            return messages.encode(messages.SponsorAnswer(messages.VERSION, grant, [self.record, *self.chain]))
        if path != OVERLAY:
            return super().answer(path, body, sender)
        time.sleep(self.late_s)
        said = codec.decode(messages.request_read(body).messages)
        self.heard += [(sender, one) for one in said]
        replies = [reply for one in said for reply in self.reply(sender, one)]
        return messages.answer_encode([codec.message_bytes(one) for one in replies])

    def _accept(self, asker: str, rp: str) -> None:
        """Accept a link of a region, by a message of its own, unless either of both is about to stop."""
        accepted = encode(LinkMessage(messages.VERSION, rp, "accept"))
        request = self.signed(asker.removesuffix(".test"), REGION.rpartition("/")[2], accepted)
        with suppress(httpx.TransportError):
            httpx.post(
                request.url, content=accepted, headers=request.headers, timeout=ANSWERED_WITHIN_S, trust_env=False
            )

    def replied(self, sender: str, message: Any) -> Sequence[Any]:
        """Return what an honest member replies."""
        if type(message) is Neighbor:
            return [NeighborReply(True)]
        if type(message) is Beat:
            return [Alive()]
        if type(message) is Probe:
            return [Alive(None, message.on_behalf)]
        if type(message) is Want and self.domain in message.domains:
            return [Records((self.record,))]
        return []
