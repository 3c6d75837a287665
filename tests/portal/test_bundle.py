"""The console's built files are looked for where they are built."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from demo.harness.servers import ROOT
from portal import bundle, middleware
from portal.bundle import FOLDER


def test_the_folder_is_the_one_that_the_build_writes() -> None:
    web = ROOT / "portal" / "web"
    stated = re.search(r"const DIST = path\.join\(HERE, ([^)]+)\);", (web / "build.mjs").read_text())
    assert stated is not None
    assert (web / "/".join(re.findall(r'"([^"]+)"', stated[1]))).resolve() == FOLDER


def test_a_console_that_is_built_while_the_domain_runs_is_named_and_served(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for module in (bundle, middleware):
        monkeypatch.setattr(module, "FOLDER", tmp_path)

    def built(name: str, at_ns: int) -> None:
        (tmp_path / name).write_text(f"// {name}")
        (tmp_path / "manifest.json").write_text(json.dumps({"page.js": name}))
        os.utime(tmp_path / "manifest.json", ns=(at_ns, at_ns))

    static = middleware.StaticFiles(lambda request: HttpResponse(status=404))

    def status(name: str) -> int:
        return int(static(RequestFactory().get(f"/static/portal/dist/{name}")).status_code)

    built("page-AAAAAAAA.js", 1)
    assert bundle.ConsoleFiles().url("portal/dist/page.js") == "/static/portal/dist/page-AAAAAAAA.js"
    assert status("page-AAAAAAAA.js") == 200
    assert status("page-BBBBBBBB.js") == 404
    built("page-BBBBBBBB.js", 2)
    assert bundle.ConsoleFiles().url("portal/dist/page.js") == "/static/portal/dist/page-BBBBBBBB.js"
    assert status("page-BBBBBBBB.js") == 200
    (tmp_path / "note.txt").write_text("of no build")
    assert status("note.txt") == 404
    assert status("../page-AAAAAAAA.js") == 404
