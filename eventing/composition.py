"""The composition root: it connects what lower subjects ask of higher ones (core/ports.py). One function a higher subject.

Imported and run once by each process, when Django has loaded its models; nothing else connects a port or a hook.
"""

from __future__ import annotations

import eventing.peering.ports
from eventing.peering.wire import endpoints, hello
from eventing.replication.forwarding import inbound, wakeups
from eventing.replication.joining import handler
from eventing.replication.selectors import replicas
from eventing.subscriptions.sharing import shared_subscriptions


def connect() -> None:
    """Connect every port and hook of the domain. Harmless when repeated."""
    _peering()
    _subscriptions()
    _replication()


def _peering() -> None:
    endpoints.handle("hello", hello.hello)


def _subscriptions() -> None:
    endpoints.handle("subscriptions", shared_subscriptions.subscriptions)


def _replication() -> None:
    eventing.peering.ports.domains_admitted.connect(replicas.domains_admitted)
    eventing.peering.ports.ever_admitted.connect(replicas.ever_admitted)
    eventing.peering.ports.peer_removed.connect(wakeups.forget)
    endpoints.handle("exchange", inbound.exchange)
    endpoints.handle("join", handler.join)
    endpoints.handle("leave", handler.leave)
    endpoints.handle("invite", handler.invite)
