"""The documents say what is true: links, settings, problem and close codes, bounds, and the command lines of the README.

Cheap checks only. That the README's tour works is shown by running it.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from herald.commands import cli

from eventing.core import errors
from eventing.core.config import Config
from eventing.core.errors import ApplicationError
from eventing.core.principals import OPERATIONS
from eventing.operations.rules.alarms import HOMES, PLACEMENT
from eventing.rps.rules.watches import AUDIENCE, KINDS
from portal.documentation.rendering import rendered
from tests.docs import bounds

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    path
    for path in [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "client").rglob("*.md"),
        ROOT / "examples" / "README.md",
        *(ROOT / "deploy").rglob("*.md"),
        ROOT / "spark/README.md",
    ]
    if "node_modules" not in path.parts
)
PROTOCOL = (ROOT / "docs" / "protocol.md").read_text()
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
ASYNCAPI = yaml.safe_load((ROOT / "docs" / "asyncapi.yaml").read_text())
CLIENT_VARIABLES = {"HERALD_TOKEN", "HERALD_URL", "HERALD_HOME", "HERALD_CLIENT_PROFILE", "HERALD_TRACEBACK"}

_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_SETTING = re.compile(r"\bHERALD_[A-Z0-9_]+\b")
_CLOSE_CONSTANT = re.compile(r"^CLOSE_[A-Z_]+ = (\d{4})", re.MULTILINE)
_CLOSE_IN_CALL = re.compile(r"(?:close\(|\"code\": )(\d{4})\b")


def prose(path: Path) -> str:
    """The text without fenced code."""
    return _FENCE.sub("", path.read_text())


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings, as the common renderers make them."""
    headings = re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(document: Path) -> None:
    broken = []
    for target in _LINK.findall(prose(document)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (document.parent / name).resolve() if name else document
        if not path.exists() or (anchor and anchor not in anchors(path)):
            broken.append(target)
    assert not broken


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_setting_named_exists(document: Path) -> None:
    known = {f"HERALD_{field.name.upper()}" for field in fields(Config)} | CLIENT_VARIABLES
    assert set(_SETTING.findall(document.read_text())) <= known


def test_the_limits_of_the_protocol_are_the_settings_defaults() -> None:
    defaults = {f"HERALD_{field.name.upper()}": field.default for field in fields(Config)}
    shown = {
        "HERALD_EVENT_BYTES_MAX": 256 * 1024,
        "HERALD_BATCH_EVENTS_MAX": 1000,
        "HERALD_BATCH_BYTES_MAX": 4 * 1024**2,
        "HERALD_LEASE_S_MAX": 30 * 86_400,
        "HERALD_HISTORY_EVENTS_MAX": 10_000_000,
        "HERALD_HISTORY_BYTES_MAX": 1024**3,
        "HERALD_HISTORY_QUOTA_BYTES": 16 * 1024**3,
        "HERALD_RPS_MAX": 100_000,
        "HERALD_SUBSCRIPTIONS_PER_RP_MAX": 10_000,
        "HERALD_SESSION_SUBSCRIPTIONS_MAX": 10_000,
        "HERALD_SESSION_PUBLISHES_MAX": 1024,
        "HERALD_SESSIONS_MAX": 100_000,
        "HERALD_SESSION_BUFFER_BYTES": 256 * 1024,
        "HERALD_DEDUP_WINDOW_S": 600,
        "HERALD_DEDUP_IDS_MAX": 100_000,
        "HERALD_REQUEST_TIMEOUT_S": 30,
        "HERALD_WAIT_S_MAX": 60,
    }
    limits = PROTOCOL.partition("\n## Limits")[2].partition("\n## ")[0]
    assert set(_SETTING.findall(limits)) == set(shown)
    assert {name: defaults[name] for name in shown} == shown


def test_every_problem_is_in_the_protocol_with_its_status() -> None:
    family = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, ApplicationError)]
    documented = dict(re.findall(r"^\| `([a-z-]+)` \| (\d{3}) \|", PROTOCOL, re.MULTILINE))
    assert documented == {kind.code: str(kind.status) for kind in family}


def test_every_close_code_of_the_code_is_in_the_protocol() -> None:
    sources = [path.read_text() for path in (ROOT / "eventing" / "gateway").rglob("*.py")]
    used = {code for text in sources for code in _CLOSE_CONSTANT.findall(text) + _CLOSE_IN_CALL.findall(text)}
    section = PROTOCOL.partition("\n### Close codes")[2].partition("\n## ")[0]
    assert used >= {"4000", "4100", "4102", "4103", "4104"}
    assert used <= set(re.findall(r"\b\d{4}\b", section))


def test_every_operation_is_in_the_protocol() -> None:
    for operation in OPERATIONS:
        assert f"| `{operation}` |" in PROTOCOL


def test_the_page_of_bounds_is_current() -> None:
    assert (ROOT / "docs" / "bounds.md").read_text() == bounds.page(), "run: make docs"


def test_every_function_that_the_architecture_names_is_where_it_says() -> None:
    named = re.findall(r"`([\w/]+\.py): (\w+(?:\.\w+)?)`", re.sub(r"\s+", " ", ARCHITECTURE))
    assert len(named) > 20
    wrong = [
        f"{file}: {name}"
        for file, name in named
        if not all(
            re.search(rf"^\s*(async def|def|class) {part}\b|^{part} = |^{part}: ", source_of(file), re.MULTILINE)
            for part in name.split(".")
        )
    ]
    assert not wrong


def source_of(file: str) -> str:
    """A source file's text, by its path in the repository or below eventing/."""
    path = ROOT / file if (ROOT / file).exists() else ROOT / "eventing" / file
    return path.read_text()


def references(value: Any) -> list[str]:
    """All `$ref`s in a document."""
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for item in value.values() for found in references(item)]
    return [found for item in value for found in references(item)] if isinstance(value, list) else []


def test_asyncapi_is_whole() -> None:
    assert ASYNCAPI["asyncapi"] == "3.0.0"
    for reference in references(ASYNCAPI):
        at: Any = ASYNCAPI
        for part in reference.removeprefix("#/").split("/"):
            at = at[part]
    assert {channel["address"] for channel in ASYNCAPI["channels"].values()} == {
        "/ws",
        "/api/v1/rps/{reference}/stream",
        None,  # of an endpoint, of a callback: its owner states it
    }


class OnceKeyed(yaml.SafeLoader):
    """Refuses a mapping that has a key twice, of which YAML's usual reader keeps the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"{node.start_mark}: a key is there twice"
        return dict(super().construct_mapping(node, deep))


def test_asyncapi_has_no_key_twice_and_names_every_problem() -> None:
    again = yaml.load((ROOT / "docs" / "asyncapi.yaml").read_text(), OnceKeyed)
    assert again == ASYNCAPI
    assert ASYNCAPI["components"]["schemas"]["ProblemType"]["enum"] == errors.problem_types()


def test_asyncapi_and_the_protocol_name_the_same_operations_and_frames() -> None:
    section = PROTOCOL.partition("\n## WebSocket")[2].partition("\n### cloudevents.json")[0]
    documented = set(re.findall(r"^\| `([a-z]+)` \|", section, re.MULTILINE))
    messages = ASYNCAPI["channels"]["herald"]["messages"]
    ops = {op for name in messages for op in constants_of("op", ASYNCAPI["components"]["messages"][name]["payload"])}
    assert ops == documented


def constants_of(member: str, schema: dict[str, Any]) -> set[str]:
    """The constant values that `schema` gives a member."""
    own = schema.get("properties", {}).get(member, {}).get("const")
    return {own} - {None} | {value for part in schema.get("allOf", []) for value in constants_of(member, part)}


def commands_of(document: str) -> list[str]:
    """The `herald ...` commands in a document's code, also those within $(...)."""
    text = (ROOT / document).read_text()
    code = "\n".join(re.findall(r"^ {4}.*$", text, re.MULTILINE) + _FENCE.findall(text))
    return re.findall(r"^(?: {4})?(herald [a-z].*)$", code, re.MULTILINE) + re.findall(r"\$\((herald [^)]*)\)", code)


TUTORIALS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "tutorials").glob("*.md"))


GUIDES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "how-to").glob("from-*.md"))
COMMANDED = ("README.md", "examples/README.md", *TUTORIALS, *GUIDES)


@pytest.mark.parametrize("line", sorted({line for name in COMMANDED for line in commands_of(name)}))
def test_every_herald_command_of_tutorials_and_guides_is_understood(line: str) -> None:
    arguments = shlex.split(line)[1:]
    context = click.Context(cli, info_name="herald")
    command: click.Command = cli
    while isinstance(command, click.Group):
        name, command_or_none, arguments = command.resolve_command(context, arguments)
        assert name is not None
        assert command_or_none is not None
        command = command_or_none
        context = click.Context(command, info_name=name, parent=context)
    command.make_context(command.name, list(arguments), parent=context.parent)  # a UsageError fails the test


def test_the_tutorials_show_the_commands_that_a_newcomer_needs() -> None:
    shown = {" ".join(shlex.split(line)[1:2]) for name in ("README.md", *TUTORIALS) for line in commands_of(name)}
    assert {"token", "rp", "sub", "pub", "monitor", "replay", "sub-durable", "peer", "replica", "proof"} <= shown


def test_every_test_that_the_table_of_attacks_names_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", (ROOT / "docs" / "federation.md").read_text())
    assert len(named) > 80
    assert [f"{file}::{name}" for file, name in named if f"def {name}(" not in (ROOT / file).read_text()] == []


def test_the_index_lists_every_decision_once_in_their_order() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    listed = re.findall(r"^- \[(\d+)\. [^\]]+\]\(decisions/([^)]+)\)$", index, re.MULTILINE)
    there = sorted(path.name for path in (ROOT / "docs" / "decisions").glob("*.md"))
    assert [name for _, name in listed] == there
    assert [int(number) for number, _ in listed] == [int(name[:4]) for name in there]


def test_the_index_leads_to_every_document() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    linked = {link.partition("#")[0] for link in _LINK.findall(index)}
    there = {
        str(path.relative_to(ROOT / "docs"))
        for folder in (".", "how-to", "tutorials")
        for path in (ROOT / "docs" / folder).glob("*.md")
    } - {"README.md"}
    assert there - linked == set()


@pytest.mark.parametrize("kind", sorted({*KINDS, AUDIENCE, PLACEMENT, HOMES}))
def test_every_kind_of_alarm_has_a_section_that_says_what_to_do(kind: str) -> None:
    """The section that alarms link to, as the domain serves it at /docs/alarms."""
    name = "docs/alarms.md"
    html = rendered((ROOT / name).read_text(), name).html
    _, found, after = html.partition(f'<h2 id="{kind}">')
    assert found, kind
    assert "<ol>" in after.partition("<h2")[0], "steps"
