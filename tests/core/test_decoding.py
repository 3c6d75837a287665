"""Decoding of foreign bytes: every kind of malformed input is one exception, and no module decodes by itself."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo.harness.servers import ROOT
from eventing.core import decoding
from eventing.core.decoding import EXPLANATION_CHARS_MAX, NestedTooDeeply, Undecodable, json_reader, msgpack_reader
from eventing.core.events.cloudevents_attributes import is_string
from eventing.core.seals import seals
from eventing.core.signing import Signed
from eventing.overlay import link_state, stored_links
from eventing.overlay.link_state import Link
from eventing.overlay.link_vector import PeerVector
from eventing.peering.wire import messages as wire
from eventing.replication.joining import messages as replica_messages
from eventing.rps.rules.statements import BadStatement
from eventing.subscriptions.rules.shared_subscriptions import record_read
from eventing.subscriptions.sharing import messages as subscription_messages

SERVER = ("eventing", "admin_rp", "portal", "workers")
JSON_LOADS = {
    "eventing/core/strict_json.py": "the reader of strangers' untyped JSON",
    "eventing/core/events/cloudevents.py": "names the repeated member of an object that was decoded before",
    "eventing/access/rules/policy.py": "canonical JSON of rules that were read strictly",
    "eventing/store/presence.py": "this domain's own note in Redis",
    "eventing/peering/traffic_samples.py": "this domain's own rows in Redis",
    "admin_rp/snapshots.py": "this domain's own rows in Redis",
    "portal/console/oidc/fetching.py": "the identity provider's documents; refuses every kind of malformed text",
    "portal/supervisor/reporting/process.py": "lines of this domain's own process",
    "portal/supervisor/data_folder.py": "a file of this domain",
    "portal/supervisor/reporting/reporter.py": "a file of this domain",
    "portal/console/load_history.py": "this domain's own administrative events",
    "portal/console/rp_history.py": "this domain's own administrative events",
    "portal/console/event_search.py": "events of this domain's logs, decoded strictly before they were stored",
    "portal/console/overlay_history.py": "this domain's own administrative events",
    "portal/auditing.py": "an answer that this process made",
    "portal/bundle.py": "a file of the build",
    "portal/supervisor/domain.py": "a line of this domain's own process",
    "portal/supervisor/backup/newest.py": "a file of this domain",
    "portal/supervisor/backup/places.py": "a file of this domain",
}
"""Modules that call json.load(s), and whose bytes they read so."""


class Pair(msgspec.Struct, array_like=True):
    number: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    text: str = ""


class Members(msgspec.Struct):
    number: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    text: str = ""
    kind: Any = None


encode = msgspec.msgpack.encode
MSGPACK = {
    "nothing": b"",
    "cut": b"\x92\x00",
    "text that is not UTF-8": b"\x92\x00\xa1\xff",
    "a surrogate in UTF-8": b"\x92\x00\xa3\xed\xa0\x80",
    "half a character": b"\x92\x00\xa1\xc3",
    "NaN": encode([float("nan"), ""]),
    "infinity": encode([float("inf"), ""]),
    "a huge integer": b"\x92\xcf" + b"\xff" * 8 + b"\xa0",
    "deep nesting": b"\x93\x00\xa0" + b"\x91" * 100_000,
    "2^32 - 1 items announced": b"\xdd\xff\xff\xff\xff",
    "an unused byte": b"\xc1",
}
JSON = {
    "nothing": b"",
    "cut": b'{"text":',
    "text that is not UTF-8": b'{"text":"\xff"}',
    "a surrogate in UTF-8": b'{"text":"\xed\xa0\x80"}',
    "a lone surrogate": rb'{"text":"\ud800"}',
    "a lone low surrogate": rb'{"text":"\udc00"}',
    "a lone surrogate before another": rb'{"text":"\ud800\ud800"}',
    "NaN": b'{"number":NaN}',
    "infinity": b'{"number":-Infinity}',
    "a huge number": b'{"number":1e999}',
    "a huge integer": b'{"kind":' + b"9" * 100_000 + b"}",
    "deep nesting": b'{"kind":' + b"[" * 100_000,
    "deep nesting where it is skipped": b'{"other":' + b"[" * 100_000,
    "a byte order mark": b"\xef\xbb\xbf{}",
}


@pytest.mark.parametrize("data", MSGPACK.values(), ids=MSGPACK)
def test_malformed_messagepack_is_one_exception(data: bytes) -> None:
    with pytest.raises(Undecodable) as raised:
        msgpack_reader(Pair)(data)
    assert is_string(str(raised.value))


@pytest.mark.parametrize("data", JSON.values(), ids=JSON)
def test_malformed_json_is_one_exception(data: bytes) -> None:
    with pytest.raises(Undecodable) as raised:
        json_reader(Members)(data)
    assert is_string(str(raised.value))


def test_deep_nesting_can_be_told_from_the_rest() -> None:
    for read, data in ((msgpack_reader(object), b"\x91" * 100_000), (json_reader(object), b"[" * 100_000)):
        with pytest.raises(NestedTooDeeply):
            read(data)


def test_what_is_well_formed_is_decoded() -> None:
    assert msgpack_reader(Pair)(encode([1, "ä"])) == Pair(1, "ä")
    assert json_reader(Members)(b'{"text":"\xc3\xa4"}') == Members(0.0, "ä")


def test_the_explanation_is_one_short_printable_line_whatever_the_bytes_say() -> None:
    class Kinded(msgspec.Struct, tag_field="kind", tag="one"):
        pass

    with pytest.raises(Undecodable) as raised:
        json_reader(Kinded)(b'{"kind":"a\\u001b[31m\\n' + b"x" * 5000 + b'"}')
    text = str(raised.value)
    assert len(text) <= EXPLANATION_CHARS_MAX
    assert text.isprintable()


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    for read in (
        msgpack_reader(wire.ExchangeRequest),
        msgpack_reader(object),
        json_reader(Members),
        json_reader(object),
    ):
        with contextlib.suppress(Undecodable):
            read(data)


NOT_UTF8 = b"\xa2\xff\xfe"
MESSAGES: dict[str, tuple[Callable[[bytes], object], type[Exception]]] = {
    "a request": (wire.request, wire.BadMessage),
    "an answer": (wire.answer, wire.BadMessage),
    "a join": (lambda data: replica_messages.decoded(data, replica_messages.JoinRequest), wire.BadMessage),
    "a message about subscriptions": (
        lambda data: subscription_messages.decoded(data, subscription_messages.SharingMessage),
        wire.BadMessage,
    ),
    "a seal": (lambda data: seals.seal_read(Signed(data, "k", b"")), seals.BadSeal),
    "a floor": (lambda data: seals.low_water_mark_read(Signed(data, "k", b"")), seals.BadSeal),
    "a subscription's record": (lambda data: record_read(Signed(data, "k", b"")), BadStatement),
}


@pytest.mark.parametrize("name", MESSAGES)
@pytest.mark.parametrize(
    "data",
    [
        b"\x93\x01" + NOT_UTF8 + NOT_UTF8,
        b"\x98" + NOT_UTF8 * 8,
        b"\x98\x01" + NOT_UTF8 * 7,
        b"\x98\x01" + b"\x91" * 400,
        b'{"v":"\xff"}',
        b'{"kind":"\xff\xfe"}',
        b"\x98\x01\xa0\xa0" + b"\xcb\x7f\xf8" + bytes(6),
    ],
)
def test_each_reader_of_the_wire_refuses_what_is_malformed_as_its_own_kind(name: str, data: bytes) -> None:
    read, kind = MESSAGES[name]
    with pytest.raises(kind) as raised:
        read(data)
    assert str(raised.value).isprintable()


def test_a_kept_link_that_is_malformed_is_begun_anew() -> None:
    stored = stored_links.stored(Link(PeerVector({"a" * 16: 7})))
    assert stored_links.read(stored).theirs == {"a" * 16: 7}
    for data in (stored.replace(b"a" * 16, b"\xff" * 16), b"\x91" * 100_000, b""):
        assert stored_links.read(data) == link_state.NEW


def _parsed(word: str) -> list[tuple[str, ast.Module]]:
    """Syntax trees of the modules whose text has the word."""
    paths = [path for folder in SERVER for path in sorted((ROOT / folder).rglob("*.py"))]
    texts = [(str(path.relative_to(ROOT)), path.read_text()) for path in paths]
    return [(name, ast.parse(text)) for name, text in texts if word in text]


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def test_no_module_but_one_uses_the_decoders_of_msgspec() -> None:
    """Whoever decodes by itself forgets one of the three exceptions: five modules of nine had."""
    helper = str(Path(decoding.__file__).relative_to(ROOT))
    names = {f"msgspec.{kind}.{name}" for kind in ("json", "msgpack") for name in ("decode", "Decoder", "_decode")}
    names |= {"msgspec.convert", "msgspec.DecodeError", "msgspec.ValidationError"}
    found = set()
    for path, tree in _parsed("msgspec"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and _dotted(node) in names:
                found.add((path, _dotted(node)))
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("msgspec"):
                used = {f"{node.module}.{alias.name}" for alias in node.names}
                found |= {(path, name) for name in used if name in names or name in ("msgspec.json", "msgspec.msgpack")}
            if isinstance(node, ast.Import):
                found |= {(path, one.name) for one in node.names if one.name.startswith("msgspec") and one.asname}
    assert {path for path, _ in found} == {helper}, found


def test_untyped_json_of_others_is_read_strictly() -> None:
    """json.loads takes lone surrogates, NaN and members named twice; who calls it is listed here with whose bytes it reads."""
    found = set()
    for path, tree in _parsed("json"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and _dotted(node) in ("json.loads", "json.load", "json.JSONDecoder"):
                found.add(path)
            if isinstance(node, ast.ImportFrom) and node.module == "json":
                found.add(path)
    assert found == set(JSON_LOADS)
