"""The examples are listed, and the programs that guides show are those of examples/, which test_examples.py runs."""

from __future__ import annotations

import pytest

from demo.harness.servers import ROOT
from tests.examples.running import EXAMPLES, blocks


def test_every_example_is_named_in_the_list_of_them() -> None:
    listed = (EXAMPLES / "README.md").read_text()
    programs = [path for path in EXAMPLES.rglob("*") if path.suffix in (".py", ".mjs", ".jsx", ".go", ".java")]
    assert len(programs) >= 9
    assert [str(path) for path in programs if f"({path.relative_to(EXAMPLES)})" not in listed] == []


@pytest.mark.parametrize(
    ("guide", "language", "program"),
    [("from-java.md", "java", "java/Follow.java"), ("from-go.md", "go", "go/main.go")],
)
def test_the_program_of_a_guide_is_the_example_that_is_run(guide: str, language: str, program: str) -> None:
    assert blocks(guide, language) == [(ROOT / "examples" / program).read_text()]
