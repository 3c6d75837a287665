"""Whether a page can be used by keyboard and screen reader, as far as axe can tell."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest

from demo.harness.servers import ROOT
from tests.portal.console.browsing import eventually

_AXE = ROOT / "portal" / "web" / "node_modules" / "axe-core" / "axe.min.js"
_GRAVE = ("serious", "critical")
_RUN = """
async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations.map(({ id, impact, help, nodes }) => ({
    id, impact, help, where: nodes.slice(0, 5).map(({ target, failureSummary }) => `${target.join(" ")}: ${failureSummary}`),
  }));
}
"""

# Looked for from here, not by `wait_for_function`: that asks again with `eval`, which the page's own policy forbids.
_STILL = """
() => {
  const ends = (animation) => Number.isFinite(animation.effect?.getComputedTiming().endTime);
  return Promise.allSettled(document.getAnimations().filter(ends).map(({ finished }) => finished)).then(() => null);
}
"""
"""Half faded in, a toast has less contrast than it will have."""
_PLACEHOLDERS = "[...document.querySelectorAll('.skeleton')].some((one) => one.checkVisibility())"


@lru_cache(maxsize=1)
def _source() -> str:
    if not _AXE.is_file():
        pytest.fail("axe-core is not installed; run: make .venv/.console-checkers")
    return _AXE.read_text()


def assert_accessible(page: Any) -> None:
    """Fail with what axe finds serious or critical on the page, in the look it has, once nothing on it is a placeholder or fades in."""
    begin(page)
    found = [one for one in violations(page) if one["impact"] in _GRAVE]
    assert not found, f"{page.url}\n{told(found)}"


def begin(page: Any) -> None:
    """Wait for the page's content, and give it axe."""
    eventually(page, lambda: not page.evaluate(_PLACEHOLDERS), f"{page.url} shows its content")
    page.evaluate(_source())  # by the debugger: the page's own policy would not let it in


def violations(page: Any) -> list[dict[str, Any]]:
    """Return all that axe finds on a page that has it, once nothing fades in."""
    page.evaluate(_STILL)
    found: list[dict[str, Any]] = page.evaluate(_RUN)
    return found


def told(found: list[dict[str, Any]]) -> str:
    """Return what was found, for a failure's report."""
    return "\n".join(f"{one['impact']} {one['id']}: {one['help']}\n    " + "\n    ".join(one["where"]) for one in found)
