"""Shared parts of all commands: the domain's address, output of results, error messages with advice."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from herald.answers import MalformedAnswer, reading
from herald.commands.groups import AliasGroup
from herald.commands.output import Complaints, complain, document, hush, say
from herald.commands.profiles import Profile, profile_of
from herald.defaults import URL_DEFAULT
from herald.errors import Closed, ConnectionLost, HeraldError, InputError, Problem

if TYPE_CHECKING:  # the client is imported when it is needed: most of the time of a start
    from herald.client import Client
    from herald.rollover import Move

REFUSED = 1
USAGE = 2
UNREACHABLE = 3
INTERRUPTED = 130
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T", bound=Mapping[str, Any])
TRACEBACK = "HERALD_TRACEBACK"
"""Environment variable: show the traceback of an unexpected error."""

_HINTS = {
    "unauthenticated": "Make a token: export HERALD_TOKEN=$(herald token create)",
    "token-revoked": "Make a token: export HERALD_TOKEN=$(herald token create)",
    "forbidden": "Ask the creator of the rendezvous point, or use another token.",
    "gone": "Its lease has expired; create it anew.",
    "precondition-failed": "Show its present etag: herald rp show",
    "invalid-cursor": "Use --from earliest or --from now, or a cursor exactly as it was printed.",
}
_NO_TOKEN = "No token was given. " + _HINTS["unauthenticated"]


@dataclass(frozen=True, slots=True)
class Target:
    """The options that every command has. `others` are URLs of other replicas, each with its token."""

    url: str
    token: str | None = field(repr=False)
    json: bool
    others: tuple[tuple[str, str | None], ...] = field(default=(), repr=False)

    def client(self, **options: Any) -> Client:
        """Return a client that fails at once if it cannot connect, and reconnects once it was connected. It reports
        moves to another replica.
        """
        from herald.client import Client

        try:
            if not self.others:
                return Client(self.url, token=self.token, first_patience_s=0, on_move=_say_move, **options)
            tokens = {url: token for url, token in ((self.url, self.token), *self.others) if token}
            return Client(list(self.urls), token=tokens, first_patience_s=0, on_move=_say_move, **options)
        except ValueError as error:
            raise click.UsageError(str(error)) from error

    @property
    def urls(self) -> tuple[str, ...]:
        """Return all URLs, the preferred one first."""
        return (self.url, *(url for url, _ in self.others))

    def show(self, found: T, text: str | Callable[[T], str | list[str]]) -> None:
        """Print a result: the document on one line with --json, else its text.

        Args:
            text: the text for people, or a function that makes it from a domain's answer; a list: several lines.

        Raises MalformedAnswer if that function cannot read the answer.
        """
        if self.json:
            document(found)
            return
        if isinstance(text, str):
            say(text)
            return
        with reading("The answer"):
            lines = text(found)
        say(*([lines] if isinstance(lines, str) else lines))


class Command(click.Command):
    """A command whose errors are one line with advice, and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        _hear_warnings()
        try:
            return super().invoke(ctx)
        except HeraldError as error:
            complain(explain(error, ctx))
            ctx.exit(_exit_code(error))
        except BrokenPipeError:
            hush()
            ctx.exit(0)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            # The outermost place. Commands read answers member by member: an unexpected shape ends here.
            if os.environ.get(TRACEBACK):
                raise
            complain(explain(MalformedAnswer(f"{type(error).__name__}: {error}."), ctx))
            ctx.exit(REFUSED)


class CommandGroup(AliasGroup):
    """A group of such commands."""

    command_class = Command


def domain_options(function: F) -> F:
    """Add --url, --token, --profile, --json and --color; the function gets them as its first argument, a Target."""

    @click.option(
        "--url",
        envvar="HERALD_URL",
        multiple=True,
        type=Several(),
        help="Address of the domain (HERALD_URL). Repeated, or separated by commas: also of other replicas, the "
        "preferred one first.",
    )
    @click.option(
        "--token",
        envvar="HERALD_TOKEN",
        multiple=True,
        type=Several(),
        help="Token to use (HERALD_TOKEN). Repeated, or separated by commas: one for each address.",
    )
    @click.option(
        "--profile",
        envvar="HERALD_CLIENT_PROFILE",
        metavar="NAME",
        help="Use the address and token of this profile (HERALD_CLIENT_PROFILE; herald profile list).",
    )
    @click.option("--json", "as_json", is_flag=True, help="Print JSON, one object per line.")
    @click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        expose_value=False,
        callback=_colour,
        help="Default: auto, on terminals unless NO_COLOR is set.",
    )
    @wraps(function)
    def wrapped(
        *args: Any, url: tuple[str, ...], token: tuple[str, ...], profile: str | None, as_json: bool, **options: Any
    ) -> Any:
        context = click.get_current_context()
        target = context.obj = _target(context, _separated(url), _separated(token), profile, as_json)
        return function(target, *args, **options)

    return wrapped  # type: ignore[return-value]


class Several(click.types.StringParamType):
    """An option that may be repeated; its environment variable has commas instead."""

    envvar_list_splitter = ","


def _separated(parts: tuple[str, ...]) -> list[str]:
    return [one.strip() for part in parts for one in part.split(",") if one.strip()]


def _colour(ctx: click.Context, parameter: click.Parameter, value: str) -> None:
    """Set whether click writes colours; None leaves it to whether the output is a terminal."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    ctx.color = {"always": True, "never": False}.get(value, False if plain else None)


def _target(context: click.Context, urls: list[str], tokens: list[str], profile: str | None, as_json: bool) -> Target:
    """Return the domain of a command: that of its options, else of the environment, else of the profile in use."""
    stated = {
        name
        for name in ("url", "token", "profile")
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    kept: Profile | None = None
    if not {"url", "token"} <= stated:
        kept = profile_of(profile)
    named = kept if "profile" in stated else None  # the profile of the command line wins over the environment
    if named is not None and "url" not in stated:
        addresses = list(named.urls)
    elif urls or kept is None or os.environ.get("HERALD_PORT"):
        addresses = urls or [url_default()]
    else:
        addresses = list(kept.urls)
    own = kept.token if kept is not None and set(addresses) <= set(kept.urls) else None
    if own is not None and "token" not in stated and (named is not None or not tokens):
        tokens = [own]
    shown: list[str | None] = [*tokens]
    if len(shown) <= 1:  # one for all
        shown = (shown or [None]) * len(addresses)
    if len(shown) != len(addresses):
        raise click.UsageError(
            f"There are {len(addresses)} addresses and {len(shown)} tokens: give one token for all, or one for each."
        )
    others = tuple(zip(addresses[1:], shown[1:], strict=True))
    return Target(addresses[0], shown[0], as_json, others)


def _say_move(move: Move) -> None:
    complain(f"{move}.")


def history_options(function: F) -> F:
    """Add the bounds of a history; see `history_of`."""
    for name, about in (
        ("--max-age-s", "Keep events no longer than this, in seconds."),
        ("--max-bytes", "Keep at most this many bytes of events."),
        ("--max-events", "Keep at most this many events."),
    ):
        function = click.option(name, type=click.IntRange(min=1), help=about)(function)
    return function


def history_of(max_events: int | None, max_bytes: int | None, max_age_s: int | None) -> dict[str, int] | None:
    """Return the stated bounds; None if there are none."""
    stated = {"max_events": max_events, "max_bytes": max_bytes, "max_age_s": max_age_s}
    return {name: value for name, value in stated.items() if value is not None} or None


def history_text(history: Mapping[str, Any]) -> str:
    """Return the bounds of a history for people."""
    parts = [
        f"{value:,} {unit}"
        for name, unit in (("max_events", "events"), ("max_bytes", "bytes"), ("max_age_s", "s"))
        if isinstance(value := history.get(name), int)
    ]
    return "at most " + ", ".join(parts) if parts else "-"


def url_default() -> str:
    """Return the address of the domain on this machine."""
    port = os.environ.get("HERALD_PORT")
    return f"http://127.0.0.1:{port}" if port else URL_DEFAULT


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a command's coroutine to its end; SIGTERM ends it as Ctrl-C does, so that positions are saved."""
    import asyncio

    async def guarded() -> None:
        task = asyncio.current_task()
        if task is not None and sys.platform != "win32":
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        await work

    try:
        asyncio.run(guarded())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _hear_warnings() -> None:
    """Print the library's warnings through output.py, unless the calling program has its own logging."""
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(Complaints(logging.WARNING))


def _exit_code(error: HeraldError) -> int:
    if isinstance(error, ConnectionLost):
        return UNREACHABLE
    return USAGE if isinstance(error, InputError) else REFUSED


def explain(error: HeraldError, ctx: click.Context) -> str:
    """Return the error and the remedy on one line."""
    target = ctx.find_object(Target)
    url = " or ".join(target.urls) if target is not None else url_default()
    token = target is not None and target.token is not None
    if isinstance(error, ConnectionLost):
        return f"{error} Check that the domain is running (make run) and that {url} is its address (--url)."
    if isinstance(error, Closed) and error.code in (4100, 4101):
        return f"{error} {_HINTS['unauthenticated']}"
    if isinstance(error, MalformedAnswer):
        return f"The answer of {url} cannot be read: {error.detail} Check that it is the address of a Herald domain (--url)."
    if not isinstance(error, Problem):
        return str(error)
    if error.code == "unauthenticated" and not token:
        return _NO_TOKEN
    hint = _HINTS.get(error.code, "")
    if error.code == "not-found" and "rendezvous point" in error.detail:
        hint = "List rendezvous points: herald rp list"
    parts = [(error.detail or error.title or str(error)).rstrip(".") + ".", hint]
    if error.retry_after_s:
        parts.append(f"Try again in {error.retry_after_s:g} s.")
    return " ".join(" ".join(parts).split())
