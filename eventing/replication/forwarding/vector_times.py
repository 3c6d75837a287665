"""The times of vectors that wait in this process (overlay/announcements.py), in Unix seconds, which gateways note as well."""

from __future__ import annotations

from eventing.conf import config
from eventing.core.container import per_process
from eventing.overlay.announcements import WaitingVectors


@per_process
def vector_times() -> WaitingVectors:
    """Return the times by peer."""
    return WaitingVectors(config().domain)
