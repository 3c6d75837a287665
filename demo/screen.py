"""The view: the domains' vectors, links, backlogs and detected misbehaviour, refreshed in place, or as plain lines."""

from __future__ import annotations

import os
import shutil
import sys
from collections import deque
from collections.abc import Sequence
from typing import TextIO

from demo.snapshot import DomainView, LinkSnapshot, Snapshot

NEWS_SHOWN = 10
PLAIN_EVERY_S = 5.0
HELP = "cut NAME, heal NAME, forge NAME, kill NAME, start NAME, lift NAME, drain NAME, undrain NAME, lose NAME, quit"
_SAVE, _RESTORE, _HOME, _CLEAR_LINE, _CLEAR_BELOW = "\x1b7", "\x1b8", "\x1b[H", "\x1b[K", "\x1b[J"


def table(snapshot: Snapshot) -> list[str]:
    """Return the domains, a line each: the version vector with a column for each origin, what it lacks, its links."""
    names = [domain.name for domain in snapshot.domains]
    wide = max(len(name) for name in names) + 1
    head = "".join(f"{name:>{wide}}" for name in names)
    lines = [f"{'':{wide}}  events held of", f"{'domain':{wide}}{head}   lacks   links"]
    most = snapshot.most
    for domain in snapshot.domains:
        if not domain.up:
            lines.append(f"{domain.name:{wide}}{'down':>{wide}}")
            continue
        held = "".join(f"{_held(domain, name, most):>{wide}}" for name in names)
        lines.append(f"{domain.name:{wide}}{held}   {snapshot.lacks(domain):>5}   {_links(domain.links)}")
    return [*lines, *_detected(snapshot)]


def _held(domain: DomainView, origin: str, most: dict[str, int]) -> str:
    held = domain.holds.get(origin, 0)
    return f"{held}{'' if held == most.get(origin, 0) else '<'}"


def _links(links: Sequence[LinkSnapshot]) -> str:
    return "  ".join(_link(link) for link in links)


def _link(link: LinkSnapshot) -> str:
    words = [link.peer, "CUT" if link.cut else "", link.mode if link.state == "active" else link.state]
    words += [f"backlog {link.backlog}" if link.backlog else "", f"({link.trouble})" if link.trouble else ""]
    return " ".join(word for word in words if word) + ";"


def _detected(snapshot: Snapshot) -> list[str]:
    lines = []
    for domain in snapshot.domains:
        found = [
            f"{kind} x{count} by {carrier}" + (f" about {origin}" if origin else "")
            for (kind, carrier, origin), count in sorted(domain.detected.items())
        ]
        if domain.quarantined:
            found.append("quarantined: " + ", ".join(sorted(domain.quarantined)))
        if found:
            lines.append(f"  {domain.name}: " + "; ".join(found))
    return ["", "detected", *(lines or ["  nothing"])]


class Screen:
    """Shows snapshots and news. On a terminal the view stays in place above the typed line; else lines follow."""

    def __init__(self, title: str, out: TextIO = sys.stdout) -> None:
        self._title = title
        self._out = out
        self._in_place = out.isatty()
        self._news: deque[str] = deque(maxlen=NEWS_SHOWN)
        self._shown_at_s = -PLAIN_EVERY_S
        self._drawn_for: os.terminal_size | None = None

    def say(self, text: str) -> None:
        """Show a message."""
        self._news.append(text)
        if not self._in_place:
            self._write(text + "\n")

    def typed(self) -> None:
        """Redraw everything after a typed line, which moved the terminal."""
        self._drawn_for = None

    def show(self, snapshot: Snapshot) -> None:
        """Show the present state: always in place, every few seconds as lines."""
        if self._in_place:
            self._draw(snapshot)
        elif snapshot.at_s - self._shown_at_s >= PLAIN_EVERY_S:
            self._shown_at_s = snapshot.at_s
            self._write("\n".join([f"--- {snapshot.at_s:.0f} s", *table(snapshot), ""]))

    def _draw(self, snapshot: Snapshot) -> None:
        size = shutil.get_terminal_size()
        height = max(size.lines - 4, 1)  # below are a blank line, the help, the typed line and the one it moves on to
        lines = [
            f"{self._title}   {snapshot.at_s:.0f} s",
            "",
            *table(snapshot),
            "",
            "news",
            *(f"  {one}" for one in self._news),
        ]
        lines = [line[: size.columns - 1] for line in (lines + [""] * height)[:height]]
        view = "".join(f"{line}{_CLEAR_LINE}\r\n" for line in lines)
        if size == self._drawn_for:
            self._write(f"{_SAVE}{_HOME}{view}{_RESTORE}")
        else:
            self._drawn_for = size
            self._write(f"{_HOME}{view}{_CLEAR_LINE}\r\n{HELP}{_CLEAR_LINE}\r\n{_CLEAR_BELOW}> ")

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
