"""The conformance page names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

from demo.harness.servers import ROOT


def test_each_test_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs/ws-eventing-conformance.md").read_text()))
    here = "".join(one.read_text() for one in sorted(Path(__file__).parent.glob("test_*.py")))
    assert named
    assert sorted(named - set(re.findall(r"def (test_\w+)", here))) == []
