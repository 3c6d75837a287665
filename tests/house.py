"""Count what the layout of the tree promises: `make house` (docs/decisions/0051), with `--list` what was counted.

Counted are the files that git tracks, outside tests; no process is started and nothing is imported.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
SUBJECTS = {"alarms": "alarm", "reports": "report", "peers": "peer"}
"""Subjects whose parts are looked for, and the word by which a path is known to be one."""
ELSEWHERE = ("tests/", "client/", "portal/console/", "portal/web/", "docs/", "templates/", "bench/", "demo/", "spark/")
"""Where the parts of a subject are not counted: the console and the client show all subjects, each page in a file."""
FRAMEWORK_NAMES = {"Command", "Meta", "Migration"}
"""Names of classes that a framework asks for."""
MUTATORS = {
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft", "remove", "setdefault", "update",
}  # fmt: skip
LIVE = {"Lock", "RLock", "Condition", "Event", "Semaphore", "local", "deque", "ThreadPoolExecutor", "WeakKeyDictionary"}
"""Constructors of objects that change, whatever the module does with them."""
CACHES = {"cache", "lru_cache"}
TARGETS = {"folders": 3, "class names": 0, "lines": 70_000, "objects": 0}


def files() -> list[str]:
    """All tracked files, as paths from the root."""
    out = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in out.splitlines() if (ROOT / name).exists()]


def room(name: str) -> str:
    """The folder whose subject a file belongs to: a subject of eventing, a part of portal, else the top folder."""
    parts = PurePosixPath(name).parts
    return "/".join(parts[:2]) if parts[0] in ("eventing", "portal") and len(parts) > 2 else parts[0]


def folders_of(word: str, names: list[str]) -> dict[str, list[str]]:
    """The rooms that hold a file which is named after a subject, with these files."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        counted = name.endswith((".py", ".lua")) and not name.startswith(ELSEWHERE) and "/migrations/" not in name
        if counted and any(word in part for part in PurePosixPath(name).parts):
            found[room(name)].append(name)
    return found


def modules(names: list[str]) -> Iterator[tuple[str, ast.Module]]:
    """Every Python module outside tests, parsed; migrations are left out."""
    for name in names:
        if name.endswith(".py") and not name.startswith(("tests/", "client/tests/")) and "/migrations/" not in name:
            yield name, ast.parse((ROOT / name).read_text())


def class_names(parsed: list[tuple[str, ast.Module]]) -> dict[str, list[str]]:
    """The public names of classes that more than one module defines, with these modules."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, tree in parsed:
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name not in FRAMEWORK_NAMES:
                found[node.name].append(name)
    return {name: where for name, where in sorted(found.items()) if len(where) > 1}


def process_wide(tree: ast.Module) -> list[str]:
    """The names in a module that stand for something which changes while the process runs."""
    bound = dict(_bound(tree))
    changed = {name for name, value in bound.items() if _is_live(value)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            changed.update(node.names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
            changed.update(_name(node.func.value))
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.Delete, ast.AnnAssign)):
            targets = node.targets if isinstance(node, (ast.Assign, ast.Delete)) else [node.target]
            for target in targets:
                if isinstance(target, (ast.Subscript, ast.Attribute)):
                    changed.update(_name(target.value))
    caches = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and any(_called(one) in CACHES for one in node.decorator_list)
    ]
    return sorted(changed & bound.keys()) + caches


def _bound(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """What is assigned to names at the level of the module."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for name in _name(target):
                    yield name, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            for name in _name(node.target):
                yield name, node.value


def _name(node: ast.expr) -> set[str]:
    return {node.id} if isinstance(node, ast.Name) else set()


def _called(node: ast.expr) -> str:
    """The name of a function that is called or named as a decorator."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_live(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and _called(value) in LIVE


def lines(names: list[str]) -> int:
    """Lines of Python outside tests."""
    counted = (name for name in names if name.endswith(".py") and not name.startswith("tests/"))
    return sum(len((ROOT / name).read_bytes().splitlines()) for name in counted)


def main() -> None:
    """Print the numbers, each with what is wanted."""
    parser = argparse.ArgumentParser(prog="make house", description=__doc__)
    parser.add_argument("--list", action="store_true", help="name what was counted")
    listed = parser.parse_args().list
    names = files()
    for subject, word in SUBJECTS.items():
        found = folders_of(word, names)
        _print(f"folders that hold a part of {subject}", len(found), TARGETS["folders"])
        for where, parts in sorted(found.items()) if listed else ():
            print(f"    {where}: {len(parts)}, among them {parts[0]}")
    parsed = list(modules(names))
    shared = class_names(parsed)
    _print("public class names that several modules define", len(shared), TARGETS["class names"])
    for name, places in shared.items() if listed else ():
        print(f"    {name}: {', '.join(places)}")
    _print("lines of Python outside tests", lines(names), TARGETS["lines"])
    objects = {name: found for name, tree in parsed if (found := process_wide(tree))}
    _print("process-wide objects that change", sum(map(len, objects.values())), TARGETS["objects"])
    for name, held in sorted(objects.items()) if listed else ():
        print(f"    {name}: {', '.join(held)}")


def _print(what: str, count: int, wanted: int) -> None:
    print(f"{what:<50}{count:>8,}   wanted {wanted:,}{'' if count <= wanted else '   not reached'}")


if __name__ == "__main__":
    main()
