"""The domain that the programs of examples/ and the commands of the guides use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from demo.harness.servers import Domain
from tests import scheduling
from tests.gateway.server import Prepared


@pytest.fixture(scope="session")
def examples_domain(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[Domain]:
    """A running domain: leave it running, use rendezvous points of your own."""
    with scheduling.shared_by("examples_domain") as shared:
        folder = tmp_path_factory.mktemp("examples") / "var"
        yield shared.enter_context(Domain(folder, seed=prepared.migrated, records=0))


@pytest.fixture
def site(examples_domain: Domain) -> Domain:
    """That domain, by a short name."""
    return examples_domain
