"""`python -m spark.document`: the tables of docs/reports.md, made from the contracts; a test compares both."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from spark.schemas import REPORTS, TableSchema


def tables() -> str:
    """Return all reports and their tables as Markdown."""
    return "\n".join(line for name, some in REPORTS.items() for line in _report(name, some))


def _report(name: str, some: tuple[TableSchema, ...]) -> Iterator[str]:
    yield f"### {name}"
    yield ""
    for table in some:
        yield f"**`{table.name}`**: {table.about}"
        yield ""
        yield "| column | type | unit | meaning |"
        yield "|---|---|---|---|"
        for column in table.columns:
            yield f"| `{column.name}` | {column.type} | {column.unit} | {column.about} |"
        yield ""


if __name__ == "__main__":
    sys.stdout.write(tables())
