"""Django's registration of the administrative RPs, and the sampler and the watcher beside each gateway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.apps import AppConfig

from admin_rp.parts import part_add
from eventing.gateway.background_services import COMPANIONS
from eventing.outbox.kind import DOMAIN, RP

if TYPE_CHECKING:
    from eventing.gateway.gateway import Gateway
    from eventing.operations.alarms.watcher import Watcher
    from eventing.operations.samples.sampling import Sampler


class AdminRpConfig(AppConfig):
    """Administrative RPs: catalogue, samples, snapshots. Changes are told by eventing/outbox/administrative_events.py."""

    name = "admin_rp"
    verbose_name = "Administrative rendezvous points"

    def ready(self) -> None:
        """Have each gateway's load sampled and rules watched, and snapshots read what others know."""
        COMPANIONS.append(_sampler)
        COMPANIONS.append(_watcher)
        for which in (DOMAIN, RP):
            part_add(which, "alarms", _alarms)
            part_add(which, "watches", _watches)
        part_add(DOMAIN, "reports", _reports)


def _sampler(gateway: Gateway) -> Sampler:
    from eventing.operations.samples.sampling import Sampler  # only a gateway needs it

    return Sampler(gateway)


def _watcher(gateway: Gateway) -> Watcher:
    from eventing.operations.alarms.watcher import Watcher  # only a gateway needs it

    return Watcher(gateway)


def _alarms(rp: str | None) -> Mapping[str, Any]:
    from eventing.operations.alarms.snapshot_parts import alarms_part  # models: after all apps are there

    return alarms_part(rp)


def _watches(rp: str | None) -> Mapping[str, Any]:
    from eventing.operations.alarms.snapshot_parts import watches_part

    return watches_part(rp)


def _reports(rp: str | None) -> Mapping[str, Any]:
    from eventing.reports.selectors.reports import reports_latest  # models: after all apps are there

    return reports_latest()
