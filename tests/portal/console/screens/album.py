"""Opens pages of a scene and has them taken, in both sizes and looks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Error as PlaywrightError

from demo.harness.servers import Domain
from tests.portal.console.browsing import PHONE, WIDE, Closing, Console, eventually
from tests.portal.console.screens.camera import take
from tests.portal.console.screens.shots import BETWEEN_PX, Shot, name_of

TRIES = 2  # a page that is not ready in time, on a machine that does something else as well, is opened once more
SETTLED_MS = 1_200  # plots and rates have drawn by then what they knew when the page was opened
_LOADING = "[...document.querySelectorAll('.skeleton, .loading')].some((one) => one.checkVisibility())"

SIZES = {
    "": (WIDE, "light"),
    "phone": (PHONE, "dark"),
    **{str(px): ({"width": px, "height": 800}, look) for px, look in zip(BETWEEN_PX, ("light", "dark"), strict=True)},
}
"""By the end of a picture's name: the view, and the look."""


def _is_taken(shot: Shot, size: str) -> bool:
    return {"": True, "phone": shot.phone}.get(size, shot.table)


class Album:
    """Pictures of one domain in `folder`: NAME.png wide and light, NAME-phone.png small and dark; of tables NAME-1024.png, light,
    and NAME-1152.png, dark."""

    def __init__(self, browser: Any, domain: Domain, folder: Path) -> None:
        self._browser, self._domain, self._folder = browser, domain, folder
        self.rps: dict[str, str] = {}
        self.failed: list[str] = []
        """What was not as it should be when it was taken: a sentence each."""

    def take(self, state: str, shots: Iterable[Shot], *, logged_in: bool = True) -> None:
        """Each in a page of its own, wide and then as on a phone; `state` goes before the name ("" for none)."""
        chosen = list(shots)
        for size in SIZES:
            wanted = [shot for shot in chosen if _is_taken(shot, size)]
            if not wanted:
                continue
            with self._console(size, logged_in=logged_in) as console:
                for shot in wanted:
                    self._open(console, shot)
                    self._take(console, state, shot, size)

    def take_broken(self, shots: Iterable[Shot]) -> None:
        """Nothing that a page asks for is answered; the page itself is."""
        with self._console() as console:
            for shot in shots:
                console.page.route(re.compile(r"/(api/v1/|console/|readyz$)"), lambda route: route.abort())
                console.go(self._address(shot))
                self._expect_away(console, shot)
                console.page.wait_for_timeout(SETTLED_MS)
                self._take(console, "broken", shot)
                console.page.unroute_all(behavior="ignoreErrors")

    def take_away(self, shots: Iterable[Shot]) -> None:
        """Pages that are open when the domain stops. It is stopped by this."""
        chosen = [(shot, size) for shot in shots for size in SIZES if _is_taken(shot, size)]
        consoles: list[tuple[Console, Shot, str]] = []
        try:
            for shot, size in chosen:
                console = self._opened(size)
                consoles.append((console, shot, size))
                self._open(console, shot)
            self._domain.kill_everything()
            for console, shot, size in consoles:
                self._expect_away(console, shot)
                console.page.wait_for_timeout(3 * SETTLED_MS)
                self._take(console, "reconnecting", shot, size)
        finally:
            for console, _, _ in consoles:
                console.context.close()

    def _expect_away(self, console: Console, shot: Shot) -> None:
        try:
            if shot.live:
                console.expect_pill(re.compile("Reconnecting"))
        except AssertionError as error:
            self._failed(shot, error, ", away")

    @contextmanager
    def _console(self, size: str = "", *, logged_in: bool = True) -> Any:
        with Closing(self._opened(size, logged_in=logged_in)) as console:
            yield console

    def _opened(self, size: str = "", *, logged_in: bool = True) -> Console:
        view, scheme = SIZES[size]
        console = Console(self._browser, self._domain, view, color_scheme=scheme)
        return console.log_in() if logged_in else console

    def _open(self, console: Console, shot: Shot) -> None:
        for left in reversed(range(TRIES)):
            try:
                self._prepare(console, shot)
                return
            except (AssertionError, PlaywrightError) as error:
                if not left:
                    self._failed(shot, error)

    def _prepare(self, console: Console, shot: Shot) -> None:
        console.go(self._address(shot))
        if shot.live:
            console.expect_pill("Live")
        shot.prepare(console.page)
        eventually(console.page, lambda: not console.page.evaluate(_LOADING), f"{shot.name} shows its content")
        console.page.mouse.move(1, 1)
        console.page.wait_for_timeout(SETTLED_MS)

    def _take(self, console: Console, state: str, shot: Shot, size: str = "") -> None:
        """One that cannot be taken is said; the others are taken all the same."""
        try:
            take(console.page, self._folder / f"{name_of(state, shot, size)}.png")
        except (AssertionError, PlaywrightError) as error:
            self._failed(shot, error)

    def _failed(self, shot: Shot, error: Exception, about: str = "") -> None:
        self.failed.append(f"{shot.name}{about}: {next(iter(str(error).splitlines()), type(error).__name__)}")

    def _address(self, shot: Shot) -> str:
        return re.sub(r"{(.+?)}", lambda found: self.rps[found[1]], shot.path)
