"""A home that has itself confirmed in a higher term: a hand-over from the home to itself.

Electors that lent their votes in an election that failed endorse no plan of the home's term, since the elected domain might exist beyond a
partition. Once the majority of them voted for the present home in a term above, that election can have had no majority or is over.
"""

from __future__ import annotations

import time

from eventing.conf import config
from eventing.core.errors import Conflict
from eventing.core.principals import Principal
from eventing.peering.selectors.domain_documents import own_fingerprint
from eventing.replication.homes.messages import HAND_OVER
from eventing.replication.homes.votes import majority_require, votes_ask
from eventing.replication.joining.announcements import link_participants
from eventing.replication.services.elector_states import term_of
from eventing.replication.services.home_moves import renewal_sign
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.home_terms import (
    HAND_OVERS_MAX,
    MOVE,
    HandOver,
    SuccessionPlan,
    digest,
    hand_over_payload,
    plan_digest,
)


def term_renew(row: RendezvousPoint, plan: SuccessionPlan, met: int, principal: Principal | None) -> None:
    """Begin a term above all that the electors met, with this domain as the home again. Raises Conflict without their majority.

    Args:
        plan: in force.
        met: the highest term that an elector stated.
    """
    own, record = config().domain, row.home_record
    if len(record.hand_overs) >= HAND_OVERS_MAX:
        raise Conflict(
            f"The home has changed {HAND_OVERS_MAX} times, which is the most. Create a new rendezvous point."
        )
    payload = hand_over_payload(
        HandOver(
            row.id,
            max(met, term_of(row), row.term) + 1,
            MOVE,
            own,
            own,
            config().base_url,
            str(own_fingerprint()),
            digest(record.hand_overs[-1].payload) if record.hand_overs else "",
            plan_digest(record),
            int(time.time() * 1000),
        )
    )
    given = votes_ask(row.id, HAND_OVER, payload, plan).given
    majority_require(plan, len(given) + plan.elects(own))
    renewal_sign(row, payload, given, principal=principal)
    link_participants(row.id)
