"""How rendezvous points look in answers."""

from __future__ import annotations

from typing import Any

from eventing.conf import config
from eventing.core.events.positions import LogState
from eventing.core.ids import ADMIN_SUFFIX, admin_id
from eventing.core.timestamps import timestamp
from eventing.outbox.administrative_events import history_data, lease_data
from eventing.rest.paths import BASE
from eventing.rps.models import RendezvousPoint
from eventing.rps.ports import lease_notice, replicas_shown
from eventing.rps.rules.descriptor import Descriptor
from eventing.rps.selectors.event_data import paused_data


def rendezvous_point(row: RendezvousPoint, log: LogState | None, *, whole: bool = True) -> dict[str, Any]:
    """An RP; `whole` adds the genesis that its id certifies, and who participates. `epoch` is null while it has no log (see `epoch` in docs)."""
    return {
        "id": row.id,
        "name": row.name,
        "title": row.title,
        "domain": row.home or config().domain,
        "creator": row.genesis["creator"] if row.home else row.creator,
        "version": row.version,
        **_log(log),
        "history": history_data(row),
        "lease": lease_data(row),
        "renew_on_use": row.renew_on_use and not row.home,
        "policy": row.policy,
        "ack": row.ack,
        "paused": paused_data(row),
        "audience": row.audience,
        "watch": row.watch,
        "created_at": timestamp(row.created_at),
        "changed_at": timestamp(row.changed_at),
        "links": {**_links(row.id), "admin": rp_path(admin_id(row.id))},
        "home": row.home or config().domain,
        **(
            {"genesis": row.genesis, "replicas": replicas_shown(row), "notice": lease_notice(row, log)} if whole else {}
        ),
    }


def administrative_rp(descriptor: Descriptor, log: LogState | None) -> dict[str, Any]:
    """An administrative RP: derived from what it reports on, without a lease, name or genesis of its own."""
    about = descriptor.id.removesuffix(ADMIN_SUFFIX)
    return {
        "id": descriptor.id,
        "name": None,
        "title": f"Administration of {about}",
        "domain": config().domain,
        "creator": descriptor.creator,
        "version": descriptor.version,
        **_log(log),
        "history": {
            "max_events": descriptor.history.max_events,
            "max_bytes": descriptor.history.max_bytes,
            "max_age_s": descriptor.history.max_age_s,
        },
        "lease": None,
        "renew_on_use": False,
        "policy": [],
        "ack": str(descriptor.ack),
        "paused": None,
        "audience": [],
        "watch": [],
        "created_at": None,
        "changed_at": None,
        "links": {**_links(descriptor.id), "admin": None},
        "home": config().domain,
        "genesis": None,
        "replicas": [],
        "notice": None,
    }


def rp_path(rp: str) -> str:
    """Where an RP is managed."""
    return f"{BASE}/rps/{rp}"


def _log(log: LogState | None) -> dict[str, Any]:
    return {"epoch": None, "offset": 0} if log is None else {"epoch": log.epoch, "offset": log.next - 1}


def _links(rp: str) -> dict[str, str]:
    path = rp_path(rp)
    return {name: f"{path}/{name}" for name in ("events", "stream", "subscriptions")}
