"""What an operator finds in a domain, made beside a running edge and in its environment: `python -m tests.client.operated`.

A peer that shares a rendezvous point and lacks events of it, two seals of that peer that contradict each other, and a
report with one table. Prints what is needed to ask for them, as JSON.
"""

from __future__ import annotations

import json

import django

django.setup()

from eventing.peering.services.evidence import evidence_keep  # noqa: E402
from eventing.reports.rules.runs import Extent  # noqa: E402
from eventing.reports.services import reports  # noqa: E402
from tests.operations.peer_behind import PEER, behind  # noqa: E402
from tests.planes import principal  # noqa: E402
from tests.replication.shared_rp import Origin  # noqa: E402
from tests.reports.test_runs import NOW, claimed, written  # noqa: E402


def main() -> None:
    """See the module."""
    domain, rp = behind()
    told = Origin(domain, rp)
    assert evidence_keep(told.seal(told.events(2)), told.seal(told.events(2)), carrier="c.test")
    row = claimed(principal("root", admin=True))
    written(row)
    reports.report_finish(run=row.id, attempt=1, output=row.output, summary={}, there=Extent(), now=NOW)
    print(json.dumps({"peer": PEER, "rp": rp, "run": str(row.id)}))


if __name__ == "__main__":
    main()
