"""The vectors for interpreters in other languages are as this one would make them, and every effect is among them."""

from __future__ import annotations

import json

from admin_rp.catalogue import CATALOGUE
from tests.admin_rp.vectors import FILE, document


def test_the_vectors_are_current() -> None:
    stale = 'run: .venv/bin/python manage.py shell -c "from tests.admin_rp.vectors import write; write()"'
    assert FILE.exists(), stale
    assert FILE.read_text() == document(), stale


def test_every_type_with_effects_changes_something_in_a_vector() -> None:
    moved = {one["event"]["type"] for one in json.loads(document())["vectors"] if one["before"] != one["after"]}
    assert {name for name, kind in CATALOGUE.items() if kind.effects} == moved
