"""`herald profile`: addresses and tokens of domains, kept by name."""

from __future__ import annotations

import os
import sys

import click
from click.core import ParameterSource

from herald.commands.common import Command, CommandGroup, Target, domain_options
from herald.commands.listing import ListColumn, ListPrinter, list_options
from herald.commands.output import ask, note
from herald.commands.profiles import NAME, PROFILES_MAX, Profile, profiles_load
from herald.errors import InputError

STDIN = "-"
TOKEN_CHARS_MAX = 8192  # most characters of a token that a domain accepts


@click.group(
    cls=CommandGroup,
    short_help="Keep addresses and tokens of domains by name.",
    aliases={"show": "list", "select": "use", "delete": "remove"},
)
def command() -> None:
    """Keep addresses and tokens of domains by name.

    They are in ~/.config/herald/profiles.json (XDG_CONFIG_HOME), which only you can read. HERALD_URL, HERALD_TOKEN and the options of
    a command win over the profile in use; --profile NAME, or HERALD_CLIENT_PROFILE, uses another one once.
    """


_COLUMNS = (
    ListColumn("name", lambda one: one["name"]),
    ListColumn("used", lambda one: "*" if one["used"] else ""),
    ListColumn("url", lambda one: ", ".join(one["url"])),
    ListColumn("token", lambda one: "kept" if one["token"] else "none"),
)


@command.command(name="list", cls=Command)
@list_options(_COLUMNS)
def list_(target: Target, columns: tuple[ListColumn, ...]) -> None:
    """List the profiles; tokens are not shown."""
    found = profiles_load()
    with ListPrinter(
        target, columns, empty="There are no profiles yet. Add one: herald profile add NAME --url URL"
    ) as rows:
        for name, one in sorted(found.items.items()):
            rows.add({"name": name, "used": name == found.used, "url": list(one.urls), "token": one.token is not None})


@command.command(cls=Command)
@click.argument("name")
@domain_options
def add(target: Target, name: str) -> None:
    """Keep --url and --token (or HERALD_URL and HERALD_TOKEN) as the profile NAME; the first one is used from then on.

    \b
    herald token create | herald profile add local --url http://127.0.0.1:8000 --token -
    """
    if not NAME.fullmatch(name):
        raise click.UsageError("A profile's name is up to 64 letters, digits, dots, dashes and underscores.")
    context = click.get_current_context()
    sources = {context.get_parameter_source(one) for one in ("url", "profile")}
    if sources <= {ParameterSource.DEFAULT, None}:
        raise click.UsageError("Give the address: --url URL.")
    found = profiles_load()
    if name not in found.items and len(found.items) >= PROFILES_MAX:
        raise InputError(
            f"There are {PROFILES_MAX} profiles, which is the most. Remove some: herald profile remove NAME"
        )
    found.items[name] = Profile(target.urls, token_given(target.token))
    found.used = found.used or name
    found.save()
    used = " It is used from now on." if found.used == name else f" Use it: herald profile use {name}"
    target.show({"name": name, "url": list(target.urls), "used": found.used == name}, f"kept {name}.{used}")


def token_given(token: str | None) -> str | None:
    """Return the token, read from standard input for `-`."""
    if token != STDIN:
        return token
    text = sys.stdin.read(TOKEN_CHARS_MAX + 2).strip()
    if not text or len(text) > TOKEN_CHARS_MAX or len(text.split()) != 1:
        raise click.UsageError("There is no token in standard input.")
    return text


@command.command(cls=Command)
@click.argument("name")
@domain_options
def use(target: Target, name: str) -> None:
    """Use the profile NAME from now on."""
    found = profiles_load()
    if name not in found.items:
        raise InputError(f"There is no profile {name!r}. List them: herald profile list")
    found.used = name
    found.save()
    target.show({"name": name, "used": True}, f"using {name}: {', '.join(found.items[name].urls)}")
    for variable in ("HERALD_URL", "HERALD_TOKEN", "HERALD_CLIENT_PROFILE"):
        if os.environ.get(variable):
            note(f"{variable} is set, and wins over the profile in use.")


@command.command(cls=Command)
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@domain_options
def remove(target: Target, name: str, yes: bool) -> None:
    """Forget the profile NAME and its token. The token stays valid: herald token revoke."""
    found = profiles_load()
    if name not in found.items:
        raise InputError(f"There is no profile {name!r}. List them: herald profile list")
    if not yes and not ask(f"Forget the profile {name} and its token?"):
        raise click.Abort
    del found.items[name]
    found.used = None if found.used == name else found.used
    found.save()
    target.show({"removed": name}, f"removed {name}")
