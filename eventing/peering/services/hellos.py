"""Writes of hellos: begun, failed, answered, and when the next one is due."""

from __future__ import annotations

from datetime import datetime

from django.db.models import F

from eventing.peering.models import Peer
from eventing.peering.models.peer import PROBLEM_CHARS_MAX


def hello_begun(name: str, *, again_at: datetime) -> None:
    """Record that a hello to the peer begins: it counts as failed until `hello_done`, and is due again at a time."""
    Peer.objects.filter(name=name).update(hello_failures=F("hello_failures") + 1, hello_at=again_at)


def hello_failed(name: str, problem: str) -> None:
    """Record why the hello to the peer failed."""
    Peer.objects.filter(name=name).update(hello_problem=problem[:PROBLEM_CHARS_MAX])


def hello_done(name: str, told: str, *, again_at: datetime) -> None:
    """Record an acknowledged hello, its content, and when the next one is due, if one is."""
    Peer.objects.filter(name=name).update(hello_told=told, hello_failures=0, hello_problem="")
    Peer.objects.filter(name=name, hello_at__isnull=False).update(hello_at=again_at)
