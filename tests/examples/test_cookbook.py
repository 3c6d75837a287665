"""The recipes of docs/cookbook.md: the commands run, and print what the page shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from demo.harness.servers import ROOT, Domain
from tests.examples.shell import prints, ran

pytestmark = [pytest.mark.processes, pytest.mark.long]
TEXT = (ROOT / "docs" / "cookbook.md").read_text()
RECIPES = re.findall(r"^## (\d+)\. [^\n]+\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)


def fenced(recipe: str, language: str) -> str:
    found = re.findall(rf"^```{language}\n(.*?)^```$", recipe, re.MULTILINE | re.DOTALL)
    assert len(found) == 1, f"one block of {language} in each recipe"
    return str(found[0])


def test_there_are_ten() -> None:
    assert [number for number, _ in RECIPES] == [str(number) for number in range(1, 11)]


@pytest.mark.parametrize("recipe", [text for _, text in RECIPES], ids=[number for number, _ in RECIPES])
def test_a_recipe_prints_what_the_page_shows(recipe: str, site: Domain, tmp_path: Path) -> None:
    told = ran(fenced(recipe, "sh"), site, tmp_path, admin=True)
    prints(told, fenced(recipe, "text"))
