"""`make screens`: bring up the scene, take a picture of every page in its states, and write docs/screens/README.md.

Takes some minutes: reports are computed on the way (Java 17 or newer; without it their page says why there are none). What
has failed is said at the end, and keeps its old picture; a few are taken anew with ARGS='--only rp-readers broken-overview'.
Look at what has changed before it is committed: that is what the pictures are for.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

from playwright.sync_api import sync_playwright

from demo.harness.servers import ROOT
from tests.portal.console.browsing import CHROMIUM
from tests.portal.console.screens.album import Album
from tests.portal.console.screens.readme import readme
from tests.portal.console.screens.scene import Scene
from tests.portal.console.screens.shots import AWAY, BROKEN, EMPTY, FULL, OUTSIDE, REFUSED, REPORTS, Shot, name_of

LIVELY_S = 60.0
"""So long things go on before the pictures: plots have something to show, and something has fallen behind."""


def main() -> int:
    """0 when every picture shows what it should."""
    parser = argparse.ArgumentParser(prog="make screens", description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=ROOT / "docs" / "screens", help="default: docs/screens")
    parser.add_argument("--lively-s", type=float, default=LIVELY_S, help=f"default: {LIVELY_S:g}")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="PICTURE", help="such as rp-readers or broken-overview"
    )
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # the domains are stopped, their data goes
    with tempfile.TemporaryDirectory(prefix="herald-screens-") as temporary:
        taken = Path(temporary) / "taken"
        taken.mkdir()
        try:
            failed = _photograph(Path(temporary), taken, chosen.only, chosen.lively_s)
            if not chosen.only and not failed:  # else those that were not taken anew stay
                shutil.rmtree(chosen.folder, ignore_errors=True)
        finally:  # also of a run that was stopped
            shutil.copytree(taken, chosen.folder, dirs_exist_ok=True)
            (chosen.folder / "README.md").write_text(readme(chosen.folder))
    for failure in failed:
        _say(failure)
    _say(f"{chosen.folder}: look at them.")
    return 1 if failed else 0


def _photograph(folder: Path, taken: Path, only: list[str], lively_s: float) -> list[str]:
    """Take the pictures; what was not as it should be when it was taken. Domains keep their data in `folder` meanwhile."""

    def wanted(state: str, shots: Iterable[Shot]) -> list[Shot]:
        return [shot for shot in shots if not only or name_of(state, shot) in only]

    with sync_playwright() as driver, Scene(folder) as scene:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-background-networking"]
        )
        album = Album(browser, scene.here, taken)
        _say("A new domain ...")
        album.take("empty", wanted("empty", EMPTY))
        album.take("", wanted("", OUTSIDE), logged_in=False)
        _say("Filling it ...")
        scene.fill()
        album.rps = scene.rps
        time.sleep(lively_s)
        _say("Every page ...")
        album.take("", wanted("", FULL))
        album.take("", wanted("", REFUSED))
        if wanted("", REPORTS):
            _say("Reports ...")  # after the pages: while they are computed everything else is slow
            album.failed.extend(scene.reports())
            album.take("", wanted("", REPORTS))
        _say("Broken ...")
        album.take_broken(wanted("broken", BROKEN))
        album.take_away(wanted("reconnecting", AWAY))
        browser.close()
    return album.failed


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
