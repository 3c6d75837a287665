"""Answers of a peer to a request: its vectors become the watermarks, its claims and seals are checked."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from eventing.core.events import vectors
from eventing.log import federated, watermarks
from eventing.log.watermarks import SeenLinks
from eventing.overlay import broadcast, link_planning
from eventing.overlay.link_planning import LinkPlan
from eventing.overlay.link_state import Link
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.peering.wire import messages as wire
from eventing.replication.forwarding import flapping, fork_detection, holding
from eventing.replication.forwarding.holding import FeedClaim
from eventing.replication.forwarding.inbound import NOT_HERE
from eventing.replication.forwarding.outbound_request import SentPart
from eventing.replication.forwarding.repeats import runs_acknowledged
from eventing.replication.services.replica_links import link_stopped
from eventing.replication.services.replica_statements import statements_acknowledged, term_stated
from eventing.replication.services.sealing import own_seal_seen

REFUSALS_MAX = (
    10  # consecutive refusals of an RP, about three minutes: the link stops, and is offered again once a minute
)


class AppliedAnswer(NamedTuple):
    """Effects of an answer.

    Attributes:
        links: the links after it, by RP.
        todo: RPs for the next request.
        took: whether the peer acknowledged any of the events sent; None if none were sent.
        covered: whether it acknowledged all of them, where it does not refuse their RP; None if there were none.
    """

    links: dict[str, Link]
    todo: list[str]
    took: bool | None
    covered: bool | None


def answer_apply(
    peer: str, answer: wire.ExchangeAnswer, sent: Mapping[str, SentPart], seen: SeenLinks
) -> AppliedAnswer:
    """Apply the peer's answer to a request with this content, whose links need not be read where they were `seen`."""
    stated = {part.rp: part for part in answer.parts if part.rp in sent}
    unbelieved, asked = _check_claims(peer, stated, sent)
    now = time.time()
    mistaken: dict[str, frozenset[str]] = {}

    def change(rp: str, link: Link) -> Link:
        part, one = stated[rp], sent[rp]
        if part.error:
            return link_planning.on_sent(one.before, link, {}, now=now, refused=True)
        outcome = broadcast.on_message(
            link,
            holding.believed(part.have, unbelieved.get(rp)),
            ours=one.ours,
            now=now,
            jitter=random.random(),  # noqa: S311 - chance, not a secret
            graft=part.graft,
            prune=part.prune,
            answers=True,
        )
        mistaken[rp] = outcome.mistaken
        acknowledged = link_planning.on_sent(one.before, outcome.link, one.last, now=now)
        claim = asked.get(rp)
        return (
            acknowledged
            if claim is None
            else broadcast.asked_at_once(acknowledged, claim.feed_key, claim.last, now=now)
        )

    changed = watermarks.links_change(peer, list(stated), change, seen)
    runs_acknowledged(peer, {rp: _of(part.have, sent[rp].last) for rp, part in stated.items() if sent[rp].last})
    flapping.grafts_judge(peer, {rp: part.graft for rp, part in stated.items()})
    flapping.prunes_note(peer, {rp: sent[rp].ours.keys() & part.prune for rp, part in stated.items() if part.prune})
    for rp, carriers in mistaken.items():
        for carrier in sorted(carriers):
            watermarks.links_change(carrier, [rp], lambda _, link: broadcast.paths_doubted(link, now=now))
    todo: list[str] = []
    for rp, link in changed.items():
        if stated[rp].error == NOT_HERE and link.refusals.count >= REFUSALS_MAX:
            link_stopped(rp=rp, peer=peer, detail="It states that it has no replica of this rendezvous point.")
        if (link.met and not sent[rp].before.met) or link_planning.plan(link, sent[rp].ours, now=now) is LinkPlan.RUNS:
            todo.append(rp)
    todo += _compare_heads(peer, stated, sent)
    acknowledged = {
        rp: one.pending for rp, one in sent.items() if one.pending is not None and rp in stated and not stated[rp].error
    }
    if acknowledged:
        todo += _terms_stated(peer, acknowledged, stated, sent)
        statements_acknowledged(peer, acknowledged)
    return AppliedAnswer(changed, todo, _took(stated, sent), _covered(stated, sent))


def _of(have: Mapping[str, int], feeds: Iterable[str]) -> dict[str, int]:
    """Return the part of a vector about these feeds."""
    return {feed: have[feed] for feed in feeds if feed in have}


def _terms_stated(
    peer: str, acknowledged: dict[str, int], stated: Mapping[str, wire.RpAnswer], sent: Mapping[str, SentPart]
) -> list[str]:
    """Record the terms that the peer states; return the RPs whose statements follow now that it knows of terms."""
    follow: list[str] = []
    for rp in list(acknowledged):
        term = stated[rp].term
        term_stated(peer, rp, -1 if term is None else term)
        if sent[rp].awaits_term and term is not None:
            follow.append(rp)
            del acknowledged[rp]
    return follow


def _check_claims(
    peer: str, stated: Mapping[str, wire.RpAnswer], sent: Mapping[str, SentPart]
) -> tuple[dict[str, FeedClaim], dict[str, FeedClaim]]:
    """Check an answer's claims of the own feed beyond its seals (holding.py).

    Returns the claims that are not credible, and those whose runs are to be requested, because the peer's software
    sends no seals.
    """
    have = {rp: part.have for rp, part in stated.items()}
    claims = holding.claims_of(have, {rp: sent[rp].head for rp in stated})
    if not claims:
        return {}, {}
    # By the present heads: more may have been sealed since, and have reached the peer through others.
    claims = _claims_now(claims, have)
    known = {rp for rp in claims if stated[rp].newest is not None}
    renewed = [rp for rp in sorted(known) for seal in stated[rp].newest or () if own_seal_seen(rp, seal)]
    if renewed:
        claims = _claims_now(claims, have)
    credible = holding.credible({rp: claim for rp, claim in claims.items() if rp not in known})
    unbelieved = {rp: claim for rp, claim in claims.items() if rp not in credible}
    for rp in unbelieved:
        detail = "It claims more of this domain's feed than is sealed, without the seal."
        misbehaviour_note("false-vector", carrier=peer, rp=rp, detail=detail)
    holding.disproved(peer, unbelieved)
    asked = {rp: claim for rp, claim in credible.items() if not sent[rp].before.met}
    holding.claimed(peer, asked)
    return unbelieved, asked


def _compare_heads(peer: str, stated: Mapping[str, wire.RpAnswer], sent: Mapping[str, SentPart]) -> list[str]:
    """Compare seals in the answer with the own ones; return the RPs at which the peer is to be asked again, because only
    its heads contradict events that arrived meanwhile.
    """
    for rp, part in stated.items():
        if part.seals:
            fork_detection.seals_met(rp, sent[rp].ours, part.seals, carrier=peer)
    again = fork_detection.contradicted(stated, {rp: sent[rp].ours for rp in stated})
    watermarks.links_change(peer, again, lambda _, link: broadcast.doubted(link, math.inf))
    return again


def _took(stated: Mapping[str, wire.RpAnswer], sent: Mapping[str, SentPart]) -> bool | None:
    """Return whether the peer acknowledged any of the events sent; None if none were sent."""
    runs = {rp: one for rp, one in sent.items() if one.last}
    if not runs:
        return None
    return any(
        stated[rp].have.get(feed, 0) > one.before.theirs.get(feed, 0)
        for rp, one in runs.items()
        if rp in stated
        for feed in one.last
    )


def _covered(stated: Mapping[str, wire.RpAnswer], sent: Mapping[str, SentPart]) -> bool | None:
    """Return whether the peer acknowledged all events sent; None if none were sent where it takes any."""
    runs = {rp: one.last for rp, one in sent.items() if one.last and (rp not in stated or not stated[rp].error)}
    if not runs:
        return None
    return all(rp in stated and vectors.covers(stated[rp].have, last) for rp, last in runs.items())


def _claims_now(rps: Iterable[str], have: Mapping[str, Mapping[str, int]]) -> dict[str, FeedClaim]:
    """Return the claims in these vectors of the own feeds beyond their present seals."""
    some = list(rps)
    heads = dict(zip(some, federated.heads(some), strict=True))
    return holding.claims_of({rp: have[rp] for rp in some}, heads)
