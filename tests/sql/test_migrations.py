"""Migrations describe the models completely, import none of our code, and say in their name what they do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import call_command

import eventing.migrations

pytestmark = pytest.mark.usefixtures("stores")

FOLDER = Path(eventing.migrations.__file__).parent


def test_the_models_need_no_further_migration() -> None:
    call_command("makemigrations", "eventing", check=True, dry_run=True, verbosity=0)


def test_migrations_import_none_of_our_code_and_are_named() -> None:
    files = sorted(FOLDER.glob("0*.py"))
    assert files
    for file in files:
        assert not re.search(r"^\s*(from|import) (eventing|portal|workers)", file.read_text(), re.M)
        assert "eventing.models" not in file.read_text()
        assert not re.search(r"_(auto|initial)", file.stem)
