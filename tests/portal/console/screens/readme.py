"""docs/screens/README.md: every picture with its sentence."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.portal.console.screens.shots import (
    AWAY,
    BETWEEN_PX,
    BROKEN,
    EMPTY,
    FULL,
    OUTSIDE,
    REFUSED,
    REPORTS,
    Shot,
    name_of,
)

_HEAD = """# The console in pictures

Made by `make screens` (tests/portal/console/screens/) from real domains: harbour.test, its peer weather.test, pilots.test, which cannot
be reached, and customs.test, which asks to be a peer. Wide pictures are light, those of a phone dark; every page has both looks.
"""


def readme(folder: Path) -> str:
    """The page, in Markdown, about the pictures that are in `folder`."""
    parts = (
        _HEAD,
        "## A busy domain\n",
        *_section(folder, "", (*FULL, *REPORTS)),
        "## Without a session, or at the wrong address\n",
        *_section(folder, "", (*OUTSIDE, *REFUSED)),
        "## A new domain\n",
        *_section(folder, "empty", EMPTY),
        "## When nobody answers\n",
        *_section(folder, "broken", BROKEN),
        "## When the domain is lost and the page tries to come back\n",
        *_section(folder, "reconnecting", AWAY),
    )
    return "\n".join(parts)


def _section(folder: Path, state: str, shots: Iterable[Shot]) -> list[str]:
    names = {shot: name_of(state, shot) for shot in shots}
    return [_shown(folder, name, shot) for shot, name in names.items() if (folder / f"{name}.png").exists()]


def _shown(folder: Path, name: str, shot: Shot) -> str:
    alt = f"{shot.title}: {shot.says}"
    wide = f'<img src="{name}.png" width="640" alt="{alt}">'
    small = f' <img src="{name}-phone.png" width="195" alt="{shot.title}, on a phone">'
    phone = small if (folder / f"{name}-phone.png").exists() else ""
    between = [f"[{px} px]({name}-{px}.png)" for px in BETWEEN_PX if (folder / f"{name}-{px}.png").exists()]
    widths = f"\n\nAt other widths: {', '.join(between)}." if between else ""
    return f"### {shot.title}\n\n{shot.says}\n\n{wide}{phone}{widths}\n"
