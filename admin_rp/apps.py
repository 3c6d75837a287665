"""Django's registration of the administrative RPs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.apps import AppConfig

from admin_rp.parts import part_add
from eventing.outbox.kind import DOMAIN, RP


class AdminRpConfig(AppConfig):
    """Administrative RPs: catalogue, states, snapshots. Changes are reported by
    eventing/outbox/administrative_events.py.
    """

    name = "admin_rp"
    verbose_name = "Administrative rendezvous points"

    def ready(self) -> None:
        """Register the parts of snapshots that other modules read."""
        for which in (DOMAIN, RP):
            part_add(which, "alarms", _alarms)
            part_add(which, "watches", _watches)
        part_add(DOMAIN, "reports", _reports)


def _alarms(rp: str | None) -> Mapping[str, Any]:
    from eventing.operations.alarms.snapshot_parts import alarms_part  # models are loaded only now

    return alarms_part(rp)


def _watches(rp: str | None) -> Mapping[str, Any]:
    from eventing.operations.alarms.snapshot_parts import watches_part

    return watches_part(rp)


def _reports(rp: str | None) -> Mapping[str, Any]:
    from eventing.reports.selectors.reports import reports_latest  # models are loaded only now

    return reports_latest()
