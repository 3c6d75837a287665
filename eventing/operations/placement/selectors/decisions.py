"""Reads of decisions, invitations and the planner's record."""

from __future__ import annotations

import re
from collections.abc import Sequence

from eventing.core.decoding import Undecodable, converted
from eventing.core.errors import InvalidRequest, NotFound
from eventing.operations.placement.models import InvitationReceived, PlacementDecision, PlannerRecord
from eventing.operations.placement.rules.decisions import OPEN, STATES
from eventing.operations.placement.rules.planner import PlannerState
from eventing.sql.pages import LIMIT_DEFAULT, Page, page_newest

_ID = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)
RECENT = 50
"""Decisions and invitations in an answer: the latest."""


def decision_get(decision: str, *, lock: bool = False) -> PlacementDecision:
    """Return one decision; `lock`: for a change of it. Raises NotFound."""
    rows = PlacementDecision.objects.select_for_update() if lock else PlacementDecision.objects.all()
    row = rows.filter(id=int(decision)).first() if _ID.fullmatch(decision) else None
    if row is None:
        raise NotFound("There is no such decision. Old decisions are deleted.")
    return row


def decisions_page(
    *, rp: str | None = None, state: str | None = None, cursor: str | None = None, limit: int = LIMIT_DEFAULT
) -> Page[PlacementDecision]:
    """Return a page of decisions, newest first. Raises InvalidRequest, InvalidCursor.

    Args:
        state: of STATES, or "open".
    """
    rows = PlacementDecision.objects.order_by("-id")
    if state == "open":
        rows = rows.filter(state__in=OPEN)
    elif state is not None:
        if state not in STATES:
            raise InvalidRequest(f"state must be open, or one of {', '.join(STATES)}.")
        rows = rows.filter(state=state)
    if rp is not None:
        rows = rows.filter(rp=rp)
    return page_newest(rows, "placement", cursor=cursor, limit=limit)


def decisions_open() -> Sequence[PlacementDecision]:
    """Return the decisions that are proposed, approved or under way, newest first."""
    return list(PlacementDecision.objects.filter(state__in=OPEN).order_by("-id")[:RECENT])


def invitations_recent() -> Sequence[InvitationReceived]:
    """Return the invitations received last."""
    return list(InvitationReceived.objects.order_by("-id")[:RECENT])


def planner_record() -> PlannerRecord | None:
    """Return what the planner last wrote; None if it never ran."""
    return PlannerRecord.objects.first()


def planner_state(record: PlannerRecord | None) -> PlannerState:
    """Return the stored state of the planner; a new one where another version of the software stored it, or nobody did."""
    if record is None:
        return PlannerState()
    try:
        return converted(record.state, PlannerState)
    except Undecodable:
        return PlannerState()
