"""Drawing of graphs as SVG text: nodes on rings around a root, or on one circle. The same file for the same graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import cos, pi, sin

Place = tuple[float, float]

SIZE_PX = 460
CAPTION_PX = 46
MARGIN_PX = 22
STYLE = """
text{font:12px system-ui,sans-serif;fill:#4a5160}.dot{fill:#8b93a3}.root{fill:#c2410c}.mark{fill:#1d5fd1}
.line{stroke:#8b93a3;fill:none;stroke-opacity:.45}.way{stroke:#1d5fd1;fill:none}.other{stroke:#0f766e;fill:none;stroke-dasharray:5 3}
.ring{stroke:#8b93a3;fill:none;stroke-opacity:.25;stroke-dasharray:2 4}.copy{stroke:#c2410c;fill:none;stroke-opacity:.55;stroke-dasharray:3 3}
@media(prefers-color-scheme:dark){text{fill:#b6bdca}.way{stroke:#79a8ff}.mark{fill:#79a8ff}.other{stroke:#4fc3b5}
.root{fill:#f08c5b}.copy{stroke:#f08c5b}}
"""


def on_rings(root: int, parents: Mapping[int, int]) -> tuple[dict[int, Place], int]:
    """Place a tree on rings around its root, a ring for each generation. Returns the places and the number of rings.

    Args:
        parents: for each node but the root, its parent.
    """
    children: dict[int, list[int]] = {}
    for node in sorted(parents):
        children.setdefault(parents[node], []).append(node)
    depth = {root: 0}
    angles: dict[int, float] = {}
    counted = 0

    def walk(node: int) -> None:
        nonlocal counted
        below = children.get(node, [])
        for child in below:
            depth[child] = depth[node] + 1
            walk(child)
        if below:
            angles[node] = sum(angles[child] for child in below) / len(below)
        else:
            angles[node] = float(counted)
            counted += 1

    walk(root)
    rings = max(depth.values())
    step = (SIZE_PX / 2 - MARGIN_PX) / max(1, rings)
    turn = 2 * pi / max(1, counted)
    return {node: _polar(step * depth[node], angles[node] * turn) for node in sorted(angles)}, rings


def on_circle(nodes: Sequence[int]) -> dict[int, Place]:
    """Place nodes on one circle, in their order."""
    return {node: _polar(SIZE_PX / 2 - MARGIN_PX, 2 * pi * at / len(nodes)) for at, node in enumerate(nodes)}


class Drawing:
    """An SVG picture in the making.

    Args:
        title: for readers who do not see it.
        caption: lines below it, at most two.
    """

    def __init__(self, title: str, caption: Sequence[str]) -> None:
        self._title = title
        self._caption = caption
        self._parts: list[str] = []

    def rings(self, count: int) -> None:
        """Draw `count` rings around the middle."""
        step = (SIZE_PX / 2 - MARGIN_PX) / max(1, count)
        for ring in range(1, count + 1):
            self._circle("ring", (SIZE_PX / 2, SIZE_PX / 2), step * ring)

    def lines(self, kind: str, pairs: Iterable[tuple[Place, Place]], *, bend: float = 0.0, width: float = 1.2) -> None:
        """Draw lines as one path.

        Args:
            kind: their class in STYLE.
            bend: from 0, straight, to 1, through the middle of the picture.
        """
        middle = SIZE_PX / 2
        drawn = []
        for (x, y), (to_x, to_y) in pairs:
            if not bend:
                drawn.append(f"M{x:.0f} {y:.0f}L{to_x:.0f} {to_y:.0f}")
                continue
            over_x = (x + to_x) / 2 * (1 - bend) + middle * bend
            over_y = (y + to_y) / 2 * (1 - bend) + middle * bend
            drawn.append(f"M{x:.0f} {y:.0f}Q{over_x:.0f} {over_y:.0f} {to_x:.0f} {to_y:.0f}")
        if drawn:
            self._parts.append(f'<path class="{kind}" stroke-width="{width:g}" d="{"".join(drawn)}"/>')

    def dots(self, kind: str, places: Iterable[Place], radius: float = 4.0) -> None:
        """Draw dots."""
        for place in places:
            self._circle(kind, place, radius)

    def text(self) -> str:
        """Return the file."""
        height = SIZE_PX + CAPTION_PX
        captions = "".join(
            f'<text x="{SIZE_PX / 2:.0f}" y="{SIZE_PX + 14 + 18 * at}" text-anchor="middle">{escape(line)}</text>'
            for at, line in enumerate(self._caption)
        )
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE_PX} {height}" role="img">'
        return (
            f"{head}<title>{escape(self._title)}</title><style>{STYLE}</style>{''.join(self._parts)}{captions}</svg>\n"
        )

    def _circle(self, kind: str, at: Place, radius: float) -> None:
        self._parts.append(f'<circle class="{kind}" cx="{at[0]:.0f}" cy="{at[1]:.0f}" r="{radius:g}"/>')


def _polar(distance: float, angle: float) -> Place:
    return SIZE_PX / 2 + distance * sin(angle), SIZE_PX / 2 - distance * cos(angle)
