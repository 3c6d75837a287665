"""The console's built files are looked for where they are built."""

from __future__ import annotations

import re

from demo.harness.servers import ROOT
from portal.bundle import FOLDER


def test_the_folder_is_the_one_that_the_build_writes() -> None:
    web = ROOT / "portal" / "web"
    stated = re.search(r"const DIST = path\.join\(HERE, ([^)]+)\);", (web / "build.mjs").read_text())
    assert stated is not None
    assert (web / "/".join(re.findall(r'"([^"]+)"', stated[1]))).resolve() == FOLDER
