"""A domain that delivers to endpoints on this machine, shared by the files that TOGETHER lists, and an endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from demo.harness.servers import Domain
from tests import scheduling
from tests.subscriptions.push.certificates import certificate_made
from tests.subscriptions.push.owner import Owner
from tests.subscriptions.push.receiver import Receiver, own_host

SETTINGS: dict[str, Any] = {
    "push": 1,
    "push_private": 1,
    "push_ports": "1-65535",
    "push_retries_s": "0.5,1,1,1,1,1,1,1",
}


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificate and key of endpoints on this machine with TLS, in one file."""
    certificate, key = certificate_made()
    path = tmp_path_factory.mktemp("served") / "endpoint.pem"
    path.write_text(key + certificate)
    return path


@pytest.fixture(scope="session")
def pushing(tmp_path_factory: pytest.TempPathFactory, prepared: Any, served: Path) -> Iterator[Domain]:
    """A domain that delivers; leave it running, use rendezvous points of your own."""
    folder = tmp_path_factory.mktemp("push")
    settings = {**SETTINGS, "push_ca_file": str(served)}
    with scheduling.shared_by("pushing") as shared:
        yield shared.enter_context(Domain(folder / "var", seed=prepared.migrated, **settings))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An endpoint."""
    with Receiver(host=own_host()) as running:
        yield running


@pytest.fixture
def owner(pushing: Domain) -> Owner:
    """An owner with an RP."""
    return Owner(pushing)
