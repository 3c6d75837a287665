"""Reads of the records of hand-overs and succession plans: the domains whose keys verify them, and the homes for people."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from django.utils import timezone

from eventing.conf import config
from eventing.core.decoding import converted
from eventing.core.timestamps import timestamp
from eventing.replication.models import ElectorState, HomeProof
from eventing.replication.shapes import HomeAnswer, HomeProofAnswer, HomesAnswer, SignedHandOver
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.home_terms import hand_over_read, plan_in_force, record_domains, record_unpacked

PROOFS_SHOWN_MAX = 100  # bound: proofs of two homes in an answer; earlier ones are left out
HOMES_SHOWN_MAX = 100  # bound: homes in an answer; RPs that were handed over earlier, or have only a plan, are left out


def domains_of_records(rps: Iterable[str] | None = None) -> list[str]:
    """Return the domains that were homes, or are electors, of these RPs, by name; None: of all RPs."""
    rows = RendezvousPoint.objects.exclude(homes=None)
    rows = rows if rps is None else rows.filter(id__in=list(rps))
    found: dict[str, None] = {}
    for genesis, homes in rows.order_by("id").values_list("genesis", "homes"):
        found |= dict.fromkeys(record_domains(genesis, record_unpacked(homes)))
    return sorted(found)


def homes_shown() -> HomesAnswer:
    """Return the homes of RPs that moved or have successors, those that moved last first."""
    now = timezone.now()
    rows = RendezvousPoint.objects.exclude(homes=None).filter(expires_at__gt=now)
    some = list(rows.only("genesis", "home", "homes", "term").order_by("-term", "id")[: HOMES_SHOWN_MAX + 1])
    states = ElectorState.objects.in_bulk([row.id for row in some])
    shown = [_home(row, states.get(row.id), now) for row in some[:HOMES_SHOWN_MAX]]
    shown.sort(key=lambda one: one.moved_at or "", reverse=True)
    return HomesAnswer(shown, len(some) <= HOMES_SHOWN_MAX, proofs_shown())


def proofs_shown() -> list[HomeProofAnswer]:
    """Return the newest proofs that an RP was handed over twice."""
    rows = HomeProof.objects.order_by("-found_at", "digest")[:PROOFS_SHOWN_MAX]
    return [
        HomeProofAnswer(
            rp=row.rp,
            term=row.term,
            kept=row.kept,
            other=row.other,
            accused=row.accused,
            detail=row.detail,
            hand_overs=converted(row.hand_overs, list[SignedHandOver]),
            carrier=row.carrier,
            found_at=timestamp(row.found_at),
        )
        for row in rows
    ]


def _home(row: RendezvousPoint, state: ElectorState | None, now: datetime) -> HomeAnswer:
    record, own = row.home_record, config().domain
    last = hand_over_read(record.hand_overs[-1].payload) if record.hand_overs else None
    plan = plan_in_force(record)
    elects = plan is not None and plan.elects(own) and bool(row.home) and state is not None
    return HomeAnswer(
        rp=row.id,
        home=row.home or own,
        term=row.term,
        kind=last.kind if last is not None else None,
        former=last.former if last is not None else None,
        moved_at=timestamp(datetime.fromtimestamp(last.at_ms / 1000, UTC)) if last is not None else None,
        electors=[one.domain for one in plan.electors] if plan is not None else [],
        silence_s=plan.silence_s if plan is not None else None,
        silent_s=max(0.0, now.timestamp() - state.heard_ms / 1000) if elects and state is not None else None,
        misses=state.misses if elects and state is not None else 0,
        electing=elects and state is not None and bool(state.voted) and state.term > row.term,
    )


def home_record_bytes(rp: str) -> bytes:
    """Return an RP's record of hand-overs as it is sent; empty for none."""
    return bytes(RendezvousPoint.objects.filter(id=rp).values_list("homes", flat=True).first() or b"")
