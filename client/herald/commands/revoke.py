"""`herald token revoke`: end tokens before they expire."""

from __future__ import annotations

import base64
import json
import sys

import click
from click.core import ParameterSource

from herald.commands.common import Command, Target, domain_options, run
from herald.errors import InputError

STDIN = "-"
TOKEN_CHARS_MAX = 8192  # most characters of a token that the domain accepts


@click.command(cls=Command)
@click.option("--id", "token_id", metavar="JTI", help="Revoke the token with this id.")
@click.option("--subject", metavar="NAME", help="Revoke all tokens issued to this subject until now.")
@click.option("--key", metavar="KID", help="Revoke all tokens that this key has signed, and the key.")
@click.option("--lift", metavar="NUMBER", help="Lift the revocation of a subject, by its printed number.")
@click.option("--issuer", metavar="ISSUER", help="Issuer of the tokens. Default: the domain.")
@click.option("--reason", default="", metavar="TEXT", help="Reason, for administrators.")
@domain_options
def revoke(
    target: Target,
    token_id: str | None,
    subject: str | None,
    key: str | None,
    lift: str | None,
    issuer: str | None,
    reason: str,
) -> None:
    """Revoke tokens: their connections are closed within 5 seconds, at every gateway.

    The holder of a token can revoke it; everything else requires an administrator's token (HERALD_TOKEN):

    \b
    herald token revoke --token -          the token itself, read from stdin
    herald token revoke --id JTI           a token by its id
    herald token revoke --subject ann      all tokens of a subject; later ones are valid
    herald token revoke --key KID          all tokens that a key has signed
    """
    stated = [("token", token_id), ("subject", subject), ("key", key), ("lift", lift)]
    wanted = [(kind, value) for kind, value in stated if value is not None]
    if target.token == STDIN:
        target = Target(target.url, sys.stdin.read(TOKEN_CHARS_MAX + 1).strip(), target.json)
    if not wanted:
        source = click.get_current_context().get_parameter_source("token")
        if source is not ParameterSource.COMMANDLINE or not target.token:  # never the token in use by mistake
            raise click.UsageError("Give what to revoke: --token - (the token itself), --id, --subject or --key.")
        shown_issuer, shown_id = _named(target.token)
        wanted, issuer = [("token", shown_id)], shown_issuer
    if len(wanted) > 1:
        raise click.UsageError("Revoke one thing at a time: --id, --subject, --key or --lift.")
    kind, value = wanted[0]
    run(_lift(target, value) if kind == "lift" else _revoke(target, kind, value, issuer, reason))


def _named(token: str) -> tuple[str, str]:
    """Return issuer and id in a JWT, which the domain verifies. Raises InputError."""
    parts = token.split(".")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        issuer, token_id = claims["iss"], claims["jti"]
    except KeyError:
        raise InputError("The token has no id. Have an administrator revoke its subject (--subject).") from None
    except (IndexError, ValueError, TypeError, RecursionError):
        raise InputError("This is not a JWT. To end a Biscuit, revoke the token that it was made from.") from None
    if not isinstance(issuer, str) or not isinstance(token_id, str):
        raise InputError("The token's issuer and id are not texts.")
    return issuer, token_id


async def _revoke(target: Target, kind: str, value: str, issuer: str | None, reason: str) -> None:
    async with target.client() as client:
        made = await client.revoke(kind, value, issuer=issuer, reason=reason)
    covers = f", issued before {made.get('before')}" if kind == "subject" else ""
    target.show(made, f"revoked {kind} {value}{covers} (number {made.get('id')})")


async def _lift(target: Target, number: str) -> None:
    async with target.client() as client:
        await client.lift_revocation(number)
    target.show({"lifted": number}, f"lifted revocation {number}")
