"""Write docs/bounds.md from the constants of the server: `make docs`.

A constant is listed if its line, or the comment above it, reads `# bound: UNIT; WHAT HAPPENS WHEN THE BOUND IS REACHED`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "bounds.md"
SERVER = ("eventing", "admin_rp", "workers", "portal")
HEAD = """# Bounds

<!-- Made by `make docs` from the comments `# bound:` beside the constants; a test keeps it current. -->

Everything that a stranger can make grow has a bound. The operator's bounds are settings ([settings.md](settings.md)). The
bounds below are constants of the code.
"""
_BOUND = re.compile(r"#\s*bound: (?P<unit>[^;]+)(?:; (?P<reached>.+))?$")


def page() -> str:
    """The whole document, a table for each folder."""
    text, folder = HEAD, ""
    for path in sorted(path for top in SERVER for path in (ROOT / top).rglob("*.py")):
        name = path.relative_to(ROOT)
        subject = "/".join(name.parts[:2]) if name.parts[0] in ("eventing", "portal") else name.parts[0]
        for row in bounds(path.read_text()):
            if subject != folder:
                folder = subject
                text += f"\n## {folder}\n\n| constant | value | bounds | when reached |\n|---|---|---|---|\n"
            inside = "/".join(name.parts[len(Path(subject).parts) :]) or name.name
            text += f"| `{inside}: {row[0]}` | {' | '.join(row[1:])} |\n"
    return text


def bounds(source: str) -> Iterator[tuple[str, str, str, str]]:
    """The name, value, unit and consequence of each bound of a module, in the order of the module."""
    lines = source.splitlines()
    for node in ast.parse(source).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(target, ast.Name) and node.value is not None:
            found = _BOUND.search(lines[node.lineno - 1]) or _above(lines, node.lineno - 1)
            if found:
                yield target.id, ast.unparse(node.value), found["unit"], found["reached"] or ""


def _above(lines: list[str], at: int) -> re.Match[str] | None:
    """The bound in the comments directly above a line."""
    while at and lines[at - 1].startswith("#"):
        at -= 1
        if found := _BOUND.match(lines[at]):
            return found
    return None


if __name__ == "__main__":
    PAGE.write_text(page())
