"""How things look in answers. Links are paths: they hold behind any proxy."""

from __future__ import annotations

from typing import Any

from eventing.access.services.tokens import IssuedToken
from eventing.conf import config
from eventing.core.events.positions import LogState
from eventing.core.ids import ADMIN_SUFFIX, admin_id
from eventing.core.timestamps import timestamp
from eventing.operations.selectors.lease_notices import rp_notice, subscription_notice
from eventing.outbox.administrative_events import history_data, lease_data, paused_data
from eventing.replication.joining.presenters import replicas_shown
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.descriptor import Descriptor
from eventing.subscriptions.selectors.shared_subscriptions import shared_shown
from eventing.subscriptions.selectors.subscription_lists import Behind

BASE = "/api/v1"


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
        **({"genesis": row.genesis, "replicas": replicas_shown(row), "notice": rp_notice(row, log)} if whole else {}),
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


def subscription(found: Behind, *, whole: bool = True) -> dict[str, Any]:
    """A durable subscription, with what it has acknowledged and how far that is behind; `whole` adds what is deleted when."""
    row = found.row
    path = subscription_path(row.id)
    return {
        "id": row.id,
        "rp": row.at,
        "owner": row.owner,
        "version": row.version,
        "history": history_data(row),
        "deliver": row.deliver,
        "lease": lease_data(row),
        "cursor": str(found.cursor),
        "lag": found.lag.events,
        "lost": found.lag.lost,
        "shared": shared_shown(row),
        "created_at": timestamp(row.created_at),
        "links": {"events": f"{path}/events", "ack": f"{path}/ack", "renew": f"{path}/renew", "rp": rp_path(row.at)},
        **({"notice": subscription_notice(row)} if whole else {}),
    }


def token(issued: IssuedToken) -> dict[str, Any]:
    """A token that was just signed."""
    return {
        "token": issued.token,
        "id": issued.id,
        "subject": issued.subject,
        "admin": issued.admin,
        "ops": None if issued.operations is None else list(issued.operations),
        "scopes": None
        if issued.scopes is None
        else [{"rps": list(scope.rps), "ops": sorted(scope.operations)} for scope in issued.scopes],
        "granted_s": issued.granted_s,
        "expires_at": timestamp(issued.expires_at),
    }


def rp_path(rp: str) -> str:
    """Where an RP is managed."""
    return f"{BASE}/rps/{rp}"


def subscription_path(subscription_id: str) -> str:
    """Where a subscription is managed."""
    return f"{BASE}/subscriptions/{subscription_id}"


def _log(log: LogState | None) -> dict[str, Any]:
    return {"epoch": None, "offset": 0} if log is None else {"epoch": log.epoch, "offset": log.next - 1}


def _links(rp: str) -> dict[str, str]:
    path = rp_path(rp)
    return {name: f"{path}/{name}" for name in ("events", "stream", "subscriptions")}
