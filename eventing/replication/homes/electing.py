"""Succession of homes that are silent, from the side of their electors; done each second.

The life of a succession: the home is probed -> its probes stay unanswered for the plan's silence -> a change of the plan that the home
left unfinished is completed (services/succession_plans.py) -> the first elector in the plan's order asks whether the others would vote for
it, as in the pre-vote of Ongaro's thesis: only if the majority would are votes given, so none is lent for nothing -> it stores its own
vote (services/elections.py) -> the others vote if the home is silent for them too -> with the majority's signatures the hand-over is
complete, and this domain is the home (services/homes.py) -> it is sent along the links. A home that returns is sent it like everybody.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from django.db import connection

from eventing.peering.wire.client import PeerError, call
from eventing.replication.homes.messages import HAND_OVER, PLAN, WOULD
from eventing.replication.homes.votes import votes_ask
from eventing.replication.joining.announcements import link_participants
from eventing.replication.joining.next_hops import NextHop, next_hop_if_active
from eventing.replication.ports import draining
from eventing.replication.services.elections import (
    Candidature,
    candidature,
    elected,
    electing,
    homes_probed,
    homes_to_probe,
    own_vote,
    silent_homes,
    term_met,
)
from eventing.replication.services.succession_plans import UnfinishedPlan, plan_finish, plans_to_finish
from eventing.rps.rules.home_terms import DomainSignature

PROBE_PATH = "/federation/v1/probe"
PROBE_S = 1.5  # seconds for a home's answer
HOMES_AT_ONCE = 8  # homes that are probed concurrently
SWEEP_S = 10.0  # bound: seconds of elections in one sweep; the others are left to the next sweep
logger = logging.getLogger(__name__)


def elections_sweep() -> int:
    """Probe the homes that this domain elects successors of, and stand for election where it is its turn.

    Returns how many RPs this domain became the home of. Safe to run twice and concurrently.
    """
    until = time.monotonic() + SWEEP_S
    pairs = electing()
    if not pairs:
        return 0
    homes_probed(pairs, _probed(homes_to_probe(pairs)))
    won = 0
    silent = silent_homes(pairs)
    for unfinished in plans_to_finish(silent):
        if time.monotonic() < until:
            _finish(unfinished)
    if draining():
        return won
    for row, plan in silent:
        if time.monotonic() > until:
            break
        candidate = candidature(row, plan)
        if candidate is not None:
            won += _run(candidate)
    return won


def _run(candidate: Candidature) -> bool:
    """Ask for votes; with the majority of them this domain is the home. Returns whether it is."""
    rp, plan = candidate.rp, candidate.plan
    would = votes_ask(rp, WOULD, candidate.payload, plan)
    given: list[DomainSignature] = []
    met = would.term
    if would.willing + 1 >= plan.quorum and (own := own_vote(candidate)) is not None:
        votes = votes_ask(rp, HAND_OVER, candidate.payload, plan)
        given, met = [own, *votes.given], max(met, votes.term)
        if len(given) >= plan.quorum and elected(candidate, given):
            link_participants(rp)
            return True
    logger.warning(
        "%d of %d electors of %s voted for this domain, %d would have; the majority is %d.",
        len(given),
        len(plan.electors),
        rp,
        would.willing + 1,
        plan.quorum,
    )
    term_met(rp, met)
    return False


def _finish(unfinished: UnfinishedPlan) -> None:
    """Complete a change of the plan in the place of the silent home, with the majority of the electors."""
    by_home, ours = unfinished.signatures
    votes = votes_ask(unfinished.rp, PLAN, unfinished.payload, unfinished.before, by_home)
    agreed = len(votes.given) + 1
    if agreed >= unfinished.before.quorum and plan_finish(unfinished, votes.given):
        logger.warning("The change of the succession plan of %s that its home left is in force.", unfinished.rp)
        link_participants(unfinished.rp)
    else:
        logger.info(
            "%d of %d electors of %s endorse the plan that %s and %s signed.",
            agreed,
            len(unfinished.before.electors),
            unfinished.rp,
            by_home.domain,
            ours.domain,
        )


def _probed(homes: Sequence[str]) -> dict[str, bool]:
    """Probe homes, several at once; return which gave a sign of life, without those that are no partners of this domain."""
    hops = [hop for name in homes if (hop := next_hop_if_active(name)) is not None]
    if not hops:
        return {}
    with ThreadPoolExecutor(HOMES_AT_ONCE, thread_name_prefix="homes") as threads:
        return {hop.domain: alive for hop, alive in zip(hops, threads.map(_alive, hops), strict=True)}


def _alive(hop: NextHop) -> bool:
    """Return whether the home answers; a signed refusal is an answer."""
    try:
        call(hop.url, hop.domain, PROBE_PATH, b"", PROBE_S)
    except PeerError as error:
        return bool(error.document)
    finally:
        connection.close()
    return True
