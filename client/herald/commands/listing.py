"""Lists: named columns, the name first. A header on a terminal, JSON lines with --json, `--columns` to choose.

In a pipe there is no header and no thousands separator, and every cell has a text ("-" for none), so that the columns stay
in their places for other programs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

import click

from herald.answers import reading
from herald.commands.common import Target, domain_options
from herald.commands.output import Cell, document, note, on_terminal, table

F = TypeVar("F", bound=Callable[..., Any])
ROWS_PIPED = 500  # bound: rows aligned with each other in a pipe; the next ones keep at least their widths
ROWS_SHOWN = 10_000  # bound: rows of one pager; further ones follow it
NONE = "-"
ALL = "all"


@dataclass(frozen=True, slots=True)
class ListColumn:
    """A column of a list.

    Attributes:
        name: the word for --columns; in capitals it is the title.
        value: the cell of an item; None or an empty text for none. Numbers are aligned to the right.
        colour: colour of the cell of an item, where it means something; None for none.
        extra: whether the column is shown only if it is asked for.
    """

    name: str
    value: Callable[[Any], object]
    colour: Callable[[Any], str | None] | None = None
    extra: bool = False


def when(text: object) -> str:
    """Return an RFC 3339 time of an answer to the second."""
    shown = str(text or "")
    return f"{shown[:19]}Z" if len(shown) > 19 and shown[10:11] == "T" else shown


def by_state(**colours: str) -> Callable[[Any], str | None]:
    """Return a function from an item to the colour of its `state`."""
    return lambda item: colours.get(str(item["state"]))


def list_options(columns: Sequence[ListColumn]) -> Callable[[F], F]:
    """Add --columns to the domain's options; the function gets the chosen ones as `columns`."""

    def decorate(function: F) -> F:
        names = ", ".join(column.name for column in columns)
        option = click.option(
            "--columns",
            callback=lambda ctx, parameter, value: _chosen(columns, value),
            metavar="NAME,...",
            help=f"Columns to show, in this order, or all. Columns: {names}.",
        )
        return option(domain_options(function))

    return decorate


def _chosen(columns: Sequence[ListColumn], value: str | None) -> tuple[ListColumn, ...]:
    if value is None:
        return tuple(column for column in columns if not column.extra)
    if value == ALL:
        return tuple(columns)
    known = {column.name: column for column in columns}
    names = [name.strip() for name in value.split(",") if name.strip()]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise click.BadParameter(
            f"There is no column {', '.join(unknown) or 'named'}. Columns: {', '.join(known)}, or all."
        )
    return tuple(known[name] for name in names)


class ListPrinter:
    """Context manager that prints the items which are added; at its end it prints what to do if there was none."""

    def __init__(self, target: Target, columns: Sequence[ListColumn], *, empty: str, paged: bool = True) -> None:
        self._json = target.json
        self._columns = columns
        self._empty = empty
        self._paged = paged
        self._terminal = on_terminal()
        self._rows: list[list[Cell]] = []
        self._widths = [0] * len(columns)
        self.count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.flush()
        if not self.count and kind is None and not self._json:
            note(self._empty)

    def add(self, item: Mapping[str, Any], shown: Any = None) -> None:
        """Add an item of an answer; `shown` is what the columns are made of, if it is something else."""
        self.count += 1
        if self._json:
            document(item)
            return
        with reading("The answer"):
            self._rows.append([self._cell(column, item if shown is None else shown) for column in self._columns])
        if len(self._rows) >= (ROWS_SHOWN if self._terminal else ROWS_PIPED):
            self.flush()

    def flush(self) -> None:
        """Print what was added, without waiting for more to align it with."""
        if not self._rows:
            return
        first = not any(self._widths)
        header = [column.name.upper() for column in self._columns] if first else []
        rows, self._rows = self._rows, []
        self._widths = table(rows, header, self._widths, paged=self._paged)

    def _cell(self, column: ListColumn, item: Any) -> Cell:
        value = column.value(item)
        if value is None or value == "":
            return Cell(NONE)
        colour = column.colour(item) if column.colour else None
        if isinstance(value, int) and not isinstance(value, bool):
            return Cell(f"{value:,}" if self._terminal else str(value), colour, right=True)
        return Cell(str(value), colour)
