"""Count what the layout of the tree promises: `make house` (docs/decisions/0051), with `--list` what was counted.

Counted are the files that git tracks, outside tests; no process is started and nothing is imported.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
SUBJECTS = {"alarms": "alarm", "reports": "report", "peers": "peer"}
"""Subjects whose parts are looked for, and the word by which a path is known to be one."""
ELSEWHERE = ("tests/", "client/", "portal/console/", "portal/web/", "docs/", "templates/", "bench/", "demo/", "spark/")
"""Where the parts of a subject are not counted: the console and the client show all subjects, each page in a file."""
SAME = {"DeviceLogin", "Event", "IssuedToken", "RendezvousPoint", "Subscription"}
"""Public names of the client library that stand for what the server's class of that name stands for; the client imports no server code."""
FRAMEWORK_NAMES = {"Command", "Meta", "Migration"}
"""Names of classes that a framework asks for."""
MUTATORS = {
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft", "remove", "setdefault", "update",
}  # fmt: skip
LIVE = {
    "Lock",
    "RLock",
    "Condition",
    "Event",
    "Semaphore",
    "local",
    "deque",
    "ThreadPoolExecutor",
    "WeakKeyDictionary",
}
"""Constructors of objects that change, whatever the module does with them."""
CACHES = {"cache", "lru_cache"}
CONTAINER = "eventing/core/container.py"
"""Holds the one object that changes for the whole process."""
PROGRAMS = ("demo/", "examples/")
"""Programs of their own, whose processes hold what they like: ports that tests reserve, a user's one client."""
QUESTION = re.compile(r"(How|What|When|Where|Whether|Which|Who|Whoever|Whom|Whose|Why)\b")
"""Opening words by which a docstring is a question's answer and no verb or noun phrase of the field."""
SPEECH = re.compile(r"\b(says?|said|tells?|told|hears?|heard|comes?|came|goes|gone|went|whoever)\b")
"""Words that docstrings may use of people, and of messages, leases and values not."""
TARGETS = {"folders": 3, "class names": 0, "lines": 70_000, "objects": 0, "questions": 0, "speech": 50}


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
    return {name: where for name, where in sorted(found.items()) if len(where) > 1 and name not in SAME}


def changing_classes(parsed: list[tuple[str, ast.Module]]) -> set[str]:
    """The names of classes with a method that changes its object after it was made."""
    return {
        node.name
        for _, tree in parsed
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and any(_changes_self(method) for method in node.body)
    }


def _changes_self(method: ast.stmt) -> bool:
    if not isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)) or method.name in ("__init__", "__post_init__"):
        return False
    return any(
        _is_of_self(target)
        for node in ast.walk(method)
        for target in (
            node.targets
            if isinstance(node, (ast.Assign, ast.Delete))
            else [node.target]
            if isinstance(node, (ast.AnnAssign, ast.AugAssign))
            else [node.func.value]
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS
            else []
        )
    )


def _is_of_self(node: ast.expr) -> bool:
    """Whether an expression is an attribute of `self`, or of one of these."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            return True
        node = node.value
    return isinstance(node, ast.Tuple) and any(_is_of_self(one) for one in node.elts)


def process_wide(tree: ast.Module, changing: Collection[str]) -> list[str]:
    """The names in a module that stand for something which changes while the process runs.

    Args:
        changing: names of classes whose objects change. What a framework registers (metrics, URLs, tasks) is not counted.
    """
    bound = dict(_bound(tree))
    changed = {name for name, value in bound.items() if _is_live(value, changing)}
    bound |= {node.name: ast.Constant(None) for node in tree.body if isinstance(node, ast.ClassDef)}
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


def process_wide_objects(parsed: list[tuple[str, ast.Module]]) -> dict[str, list[str]]:
    """The names of process-wide objects that change, by module."""
    changing = changing_classes(parsed)
    counted = ((name, tree) for name, tree in parsed if name != CONTAINER and not name.startswith(PROGRAMS))
    return {name: held for name, tree in counted if (held := process_wide(tree, changing))}


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


def _is_live(value: ast.expr, changing: Collection[str]) -> bool:
    if not isinstance(value, ast.Call):
        return False
    if isinstance(value.func, (ast.Call, ast.Subscript)):  # lru_cache(8)(function), Recent[int](read)
        return _called(value.func) in CACHES or _called(getattr(value.func, "value", value.func)) in changing
    return _called(value) in LIVE or _called(value) in changing


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every docstring of a module, its classes, functions and attributes: line and text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def matching(pattern: re.Pattern[str], parsed: list[tuple[str, ast.Module]], *, at_start: bool = False) -> list[str]:
    """The docstrings in which `pattern` is found, each as `FILE:LINE: first line`; with `at_start` those that open with it."""
    found = pattern.match if at_start else pattern.search
    return [
        f"{name}:{line}: {text.strip().splitlines()[0]}"
        for name, tree in parsed
        for line, text in docstrings(tree)
        if found(text)
    ]


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
    objects = process_wide_objects(parsed)
    _print("process-wide objects that change", sum(map(len, objects.values())), TARGETS["objects"])
    for name, held in sorted(objects.items()) if listed else ():
        print(f"    {name}: {', '.join(held)}")

    for what, target, pattern, at_start in (
        ("docstrings that open with a question word", "questions", QUESTION, True),
        ("docstrings with say, tell, hear, come or go", "speech", SPEECH, False),
    ):
        rows = matching(pattern, parsed, at_start=at_start)
        _print(what, len(rows), TARGETS[target])
        for row in rows if listed else ():
            print(f"    {row}")


def _print(what: str, count: int, wanted: int) -> None:
    print(f"{what:<50}{count:>8,}   wanted {wanted:,}{'' if count <= wanted else '   not reached'}")


if __name__ == "__main__":
    main()
