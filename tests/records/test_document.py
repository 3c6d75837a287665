"""docs/records.md tells every column as the code has it."""

from __future__ import annotations

from pathlib import Path

from eventing.records.schema import COLUMNS

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "records.md"


def test_the_document_names_every_column_with_type_unit_and_meaning() -> None:
    text = DOCUMENT.read_text()
    told = [line for line in text[text.index("| column |") :].splitlines() if line.startswith("| `")][: len(COLUMNS)]
    assert told == [f"| `{one.name}` | {one.type} | {one.unit} | {one.about} |" for one in COLUMNS]
