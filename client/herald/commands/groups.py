"""Groups of commands: one verb per act with its former names, and the name that may be meant by an unknown one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

import click

SYNONYMS = {
    "add": ("create", "add"),
    "alter": ("change",),
    "describe": ("show", "info"),
    "edit": ("change",),
    "end": ("delete", "leave", "remove"),
    "get": ("show",),
    "info": ("info", "show"),
    "ls": ("list",),
    "make": ("create",),
    "new": ("create", "add"),
    "patch": ("change",),
    "remove": ("delete", "remove", "leave"),
    "rm": ("delete", "remove", "leave"),
    "status": ("status", "show"),
    "use": ("use",),
    "publish": ("pub",),
    "send": ("pub",),
    "produce": ("pub",),
    "subscribe": ("sub",),
    "consume": ("sub",),
    "tail": ("sub",),
    "listen": ("sub",),
    "watch": ("sub", "watch", "top"),
    "topic": ("rp",),
    "stream": ("rp",),
    "consumer": ("sub-durable",),
    "stats": ("top",),
}
"""Names that other systems have for an act or an object, and what they are here."""


def suggested(error: click.UsageError, ctx: click.Context, name: str, known: Iterable[str]) -> click.UsageError:
    """Return the error about an unknown command with the commands that may be meant."""
    names = list(known)
    meant = [one for one in SYNONYMS.get(name.lower(), ()) if one in names] or get_close_matches(name.lower(), names)
    text = f"There is no command {name!r}."
    if meant:
        text += f" Did you mean {' or '.join(repr(one) for one in meant)}?"
    return click.UsageError(text, ctx) if type(error).__name__ == "NoSuchCommand" else error


class AliasGroup(click.Group):
    """A group with other names of its commands, which help does not list."""

    def __init__(self, *arguments: object, aliases: Mapping[str, str] | None = None, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type] # as click.Group's
        self.aliases = dict(aliases or {})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name, or that it was called once."""
        return super().get_command(ctx, self.aliases.get(cmd_name, cmd_name))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names, or name one that may be meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise suggested(error, ctx, args[0], self.commands) from None
