"""docs/administrative-events.md is made from the catalogue, and the catalogue is whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import call_command
from jsonschema import Draft202012Validator

from admin_rp.catalogue import CATALOGUE, EMPTY
from admin_rp.documentation import filled
from eventing.outbox import administrative_events
from eventing.outbox.kind import DOMAIN, OVERLAY, RP

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "administrative-events.md"
OPS = {"put", "merge", "remove"}
MEMBERS = {"op", "at", "value", "without", "in", "each", "when", "if", "newer", "most", "by"}


def test_the_document_is_as_the_catalogue_says() -> None:
    text = DOCUMENT.read_text()
    assert filled(text) == text, "run: .venv/bin/python manage.py administrative_events --write"


def test_the_typescript_declarations_are_as_the_shapes_state() -> None:
    call_command("typescript", check=True)


def test_every_type_is_in_the_catalogue_and_nothing_else() -> None:
    types = {
        value
        for name, value in vars(administrative_events).items()
        if name.isupper() and isinstance(value, str) and value.startswith("io.herald.")
    }
    assert types == set(CATALOGUE)


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_a_kind_is_well_made(name: str) -> None:
    kind = CATALOGUE[name]
    Draft202012Validator.check_schema(kind.schema)
    assert kind.about.endswith(".")
    assert set(kind.where) <= {DOMAIN, OVERLAY, RP}
    for effect in kind.effects:
        assert set(effect) <= MEMBERS
        assert effect["op"] in OPS
        assert ("value" in effect) == (effect["op"] != "remove")
        assert ("most" in effect) == ("by" in effect)
        places = [effect["in"]] if "in" in effect else [DOMAIN, RP]
        for place in places:
            assert effect["at"][0] in EMPTY[place], "a member that states always have"
            assert place in kind.where, "it is told where the state's reader reads"
        for path in re.findall(r"\$([a-z_]+)", str([effect["at"], effect.get("value")])):
            assert path in kind.data or (path == "each" and "each" in effect)


def test_every_member_of_the_states_is_in_the_document() -> None:
    text = DOCUMENT.read_text()
    assert [member for state in EMPTY.values() for member in state if f"`{member}`" not in text] == []
