"""`herald login`: get a token by a link that is approved in the console, and keep it as a profile."""

from __future__ import annotations

import getpass
import platform
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import click

from herald.commands.common import Command, Target, domain_options, run
from herald.commands.moments import span
from herald.commands.output import note
from herald.commands.profiles import NAME, Profile, Profiles, profiles_load
from herald.device_login import DeviceLogin


@click.command(cls=Command, short_help="Log in by a link, and keep the token as a profile.")
@click.argument("address", metavar="URL", required=False)
@click.option("--name", help="Name of the profile. Default: the domain's name.")
@domain_options
def command(target: Target, address: str | None, name: str | None) -> None:
    """Print a link and a code; who approves them in the console of the domain at URL lends this machine a token.

    The token is kept as a profile, which is used from then on (herald profile list). Without URL: the domain of the profile
    in use, or of --url and HERALD_URL.

    \b
    herald login https://b.example
    """
    if name is not None and not NAME.fullmatch(name):
        raise click.UsageError("A profile's name is up to 64 letters, digits, dots, dashes and underscores.")
    found = profiles_load()  # before anybody is asked: a file that cannot be read or has others' access is refused

    async def work() -> None:
        try:
            login = DeviceLogin(address or target.url)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        async with login:
            codes = await login.begin(_client())
            note(
                f"Open {codes.url_with_code}", f"and approve the code {codes.user_code} within {span(codes.expires_s)}."
            )
            issued = await login.wait(codes)
        kept = name or _named(issued.domain)
        _keep(found, kept, login.url, issued.token)
        ends = datetime.now(UTC) + timedelta(seconds=issued.expires_s)
        document = {
            "profile": kept, "url": login.url, "domain": issued.domain, "subject": issued.subject, "admin": issued.admin,
            "expires_at": ends.isoformat(timespec="seconds").replace("+00:00", "Z"),
        }  # fmt: skip
        about = f"logged in at {issued.domain} as {issued.subject}, for {span(issued.expires_s)}"
        target.show(document, f"{about}. Profile {kept} is used from now on.")

    run(work())


def _client() -> str:
    user = "somebody"
    with suppress(OSError, KeyError):
        user = getpass.getuser()
    return f"herald of {user} at {platform.node() or 'this machine'}"


def _named(domain: str) -> str:
    shown = "".join(c if NAME.fullmatch(f"a{c}") else "-" for c in domain)[:64]
    return shown if NAME.fullmatch(shown) else "default"


def _keep(found: Profiles, name: str, url: str, token: str) -> None:
    found.items[name] = Profile((url,), token)
    found.used = name
    found.save()
