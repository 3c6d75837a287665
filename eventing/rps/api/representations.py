"""Representations of rendezvous points in answers."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from eventing.conf import config
from eventing.core.events.positions import LogState
from eventing.core.ids import ADMIN_SUFFIX, admin_id
from eventing.rest.paths import BASE
from eventing.rest.shapes import HistoryAnswer, LeaseAnswer
from eventing.rps.models import RendezvousPoint
from eventing.rps.ports import lease_notice, replicas_shown
from eventing.rps.rules.descriptor import Descriptor
from eventing.rps.rules.home_terms import plan_in_force
from eventing.rps.selectors.event_data import paused_data
from eventing.rps.shapes import RendezvousPointAnswer, RendezvousPointLinks, SuccessionData


def rendezvous_point(row: RendezvousPoint, log: LogState | None, *, whole: bool = True) -> RendezvousPointAnswer:
    """Describe an RP; `whole` adds the genesis that its id certifies, the participants and the lease notice."""
    home = row.home or config().domain
    return RendezvousPointAnswer.of(
        row,
        domain=home,
        home=home,
        succession=_succession(row),
        creator=row.genesis["creator"] if row.home else row.creator,
        history=HistoryAnswer.of(row),
        lease=LeaseAnswer.of(row),
        renew_on_use=row.renew_on_use and not row.home,
        paused=paused_data(row),
        links=_links(row.id, admin=rp_path(admin_id(row.id))),
        genesis=row.genesis if whole else UNSET,
        replicas=replicas_shown(row) if whole else UNSET,
        notice=lease_notice(row, log) if whole else UNSET,
        **_log(log),
    )


def administrative_rp(descriptor: Descriptor, log: LogState | None) -> RendezvousPointAnswer:
    """Describe an administrative RP: derived from the RP that it reports on, without a lease, name or genesis of its own."""
    return RendezvousPointAnswer.of(
        descriptor,
        name=None,
        title=f"Administration of {descriptor.id.removesuffix(ADMIN_SUFFIX)}",
        domain=config().domain,
        home=config().domain,
        term=0,
        succession=None,
        history=HistoryAnswer.of(descriptor.history),
        lease=None,
        renew_on_use=False,
        policy=[],
        ack=str(descriptor.ack),
        reliability=None,
        paused=None,
        audience=[],
        watch=[],
        created_at=None,
        changed_at=None,
        links=_links(descriptor.id, admin=None),
        genesis=None,
        replicas=[],
        notice=None,
        **_log(log),
    )


def rp_path(rp: str) -> str:
    """Path of an RP in the management interface."""
    return f"{BASE}/rps/{rp}"


def _succession(row: RendezvousPoint) -> SuccessionData | None:
    plan = plan_in_force(row.home_record)
    if plan is None:
        return None
    return SuccessionData(
        electors=[one.domain for one in plan.electors], silence_s=plan.silence_s, version=plan.version
    )


def _log(log: LogState | None) -> dict[str, Any]:
    return {"epoch": None, "offset": 0} if log is None else {"epoch": log.epoch, "offset": log.next - 1}


def _links(rp: str, admin: str | None) -> RendezvousPointLinks:
    path = rp_path(rp)
    return RendezvousPointLinks(
        events=f"{path}/events", stream=f"{path}/stream", subscriptions=f"{path}/subscriptions", admin=admin
    )
