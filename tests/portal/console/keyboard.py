"""Whether a page can be used without a pointer: what Tab reaches, and whether it is seen there."""

from __future__ import annotations

from typing import Any

STOPS_MAX = 120
_FOCUSED = """
() => {
  const one = document.activeElement;
  if (!one || one === document.body) return null;
  const seen = [one, one.nextElementSibling, one.querySelector(".halo, .disc")].filter(Boolean).map((each) => getComputedStyle(each));
  const box = one.getBoundingClientRect();
  const over = document.elementFromPoint(box.x + box.width / 2, box.y + Math.min(box.height / 2, 20));
  window.herald_stops ??= new Map();
  if (!window.herald_stops.has(one)) window.herald_stops.set(one, window.herald_stops.size);
  return {
    stop: window.herald_stops.get(one),
    what: `${one.localName}#${one.id} ${(one.getAttribute("aria-label") ?? one.innerText ?? one.name ?? "").trim().slice(0, 40)}`,
    named: Boolean((one.getAttribute("aria-label") ?? one.innerText ?? "").trim() || one.labels?.length || one.getAttribute("aria-labelledby")),
    marked: seen.some(({ outlineStyle, outlineWidth }) => outlineStyle !== "none" && parseFloat(outlineWidth) >= 2),
    covered: Boolean(over) && !one.contains(over) && !over.contains(one) && !over.closest("label") && over.closest(".top, .toasts") !== null,
    visible: box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight,
    inside: Boolean(one.closest("dialog[open]")),
  };
}
"""


def stops(page: Any) -> list[dict[str, Any]]:
    """What Tab reaches from where the focus is, in order, until it comes around or leaves the page."""
    reached: list[dict[str, Any]] = []
    page.evaluate("window.herald_stops = new Map()")
    for _ in range(STOPS_MAX):
        page.keyboard.press("Tab")
        stop = page.evaluate(_FOCUSED)
        if stop is None or stop["stop"] < len(reached):
            break
        reached.append(stop)
    return reached


def assert_usable_by_keyboard(page: Any) -> list[dict[str, Any]]:
    """Fail where the focus is not seen, stands on nothing, or is hidden by the header. The stops."""
    reached = stops(page)
    for fault, holds in (("is not marked", "marked"), ("has no name", "named"), ("is not to be seen", "visible")):
        wrong = [stop["what"] for stop in reached if not stop[holds]]
        assert not wrong, f"{page.url}: the focus {fault} at {wrong}"
    assert not [stop["what"] for stop in reached if stop["covered"]], f"{page.url}: under the header"
    return reached
