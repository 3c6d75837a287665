"""Narrowing of delegated tokens without a server: for one rendezvous point, read-only, an hour.

    narrowed = delegate(biscuit, rps=["/example.org/weather/"], operations=["subscribe", "history"], for_s=3600)

A Biscuit of Herald is `biscuit:KEY:BASE64URL`: a chain of blocks, each signed with a key that the block before it
names.
`Client.create_biscuit` gets one from the domain, once. Its holder appends a block of checks, in this process; the
result can do less and never more, and its recipient cannot remove the block.

Needs the package biscuit-python: `pip install herald-client[delegation]`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from herald.errors import InputError

if TYPE_CHECKING:
    from biscuit_auth import Biscuit

PREFIX = "biscuit:"
OPERATIONS = ("describe", "publish", "subscribe", "history", "administer", "replicate")
TOKEN_CHARS_MAX = 8 * 1024  # most that a domain accepts
BLOCKS_MAX = 16  # most that a domain accepts, with its own block
PATTERNS_MAX = 64
_ID = re.compile(r"[a-z2-7]{26}(\.admin)?|domain\.admin")
_PART = r"[A-Za-z0-9._~-]{1,64}"
_NAME = re.compile(rf"/(?:{_PART}/)+")
_LAST_DATE = 253_402_300_799  # the end of the year 9999
_FORM = re.compile(r"biscuit:([A-Za-z0-9_-]{1,64}):([A-Za-z0-9_=-]+)", re.ASCII)
_KEY = re.compile(r'^key\("([A-Za-z0-9_-]{43})"\);$', re.MULTILINE)
_CLAIM = re.compile(r'claim(_json)?\("([^"]*)", (?:"(.*)"|(true|false|-?[0-9]+))\);')
_JWT_PARTS = 3


@dataclass(frozen=True, slots=True)
class Inspected:
    """The content of a token, read without a server.

    Attributes:
        kind: `biscuit` or `jwt`.
        key_id: the key that it states to be signed with.
        chained: whether every block is signed by the one before, beginning with that key; None for a JWT, which does
            not contain its key. Only the domain can verify that the key is its own.
        claims: of the token that it was made from.
        checks: those that each holder appended, a list for each block.
        expires_at: the earliest end that it states, Unix seconds; None if it states none.
    """

    kind: str
    key_id: str
    chained: bool | None
    claims: Mapping[str, Any]
    checks: tuple[tuple[str, ...], ...]
    expires_at: float | None

    def document(self) -> dict[str, Any]:
        """Return the content as JSON."""
        return {
            "kind": self.kind,
            "key_id": self.key_id,
            "chained": self.chained,
            "claims": dict(self.claims),
            "checks": [list(block) for block in self.checks],
            "expires_at": self.expires_at,
        }


def delegate(
    token: str,
    *,
    rps: Iterable[str] = (),
    operations: Iterable[str] = (),
    for_s: float | None = None,
    now: float | None = None,
) -> str:
    """Return a token that can do less than `token`, without a server.

    Args:
        token: a Biscuit, `biscuit:KEY:BASE64URL`, which may be narrowed already.
        rps: ids, names `/authority/a/b/`, or prefixes of names `/authority/a/*`: any of these. A name without leading
            slash is put under the token's domain. Empty: no narrowing.
        operations: of OPERATIONS. Empty: no narrowing.
        for_s: seconds from now after which it expires; None: with `token`.
        now: Unix seconds; None for this machine's clock.

    Raises InputError, with what to do.
    """
    from biscuit_auth import BlockBuilder

    kid, biscuit = _open(token)
    authority = _claims(biscuit.block_source(0))
    rps, operations = list(rps), list(operations)
    checks = []
    if operations:
        unknown = [operation for operation in operations if operation not in OPERATIONS]
        if unknown:
            raise InputError(f"There is no operation {unknown[0]}. Use one or several of {', '.join(OPERATIONS)}.")
        checks.append(" or ".join(f'operation("{operation}")' for operation in dict.fromkeys(operations)))
    if rps:
        if len(rps) > PATTERNS_MAX:
            raise InputError(f"A token is narrowed to at most {PATTERNS_MAX} rendezvous points. Use prefixes of names.")
        checks.append(" or ".join(_place(rp, str(authority.get("iss", ""))) for rp in dict.fromkeys(rps)))
    if for_s is not None:
        ends = int(min((time.time() if now is None else now) + for_s, _LAST_DATE))
        checks.append(f"time($time), $time <= {datetime.fromtimestamp(ends, UTC):%Y-%m-%dT%H:%M:%SZ}")
    if not checks:
        raise InputError("Give what to narrow the token to: rendezvous points, operations or a time.")
    if biscuit.block_count() >= BLOCKS_MAX:
        raise InputError(f"The token was delegated {BLOCKS_MAX - 1} times, which is the most. Delegate an earlier one.")
    narrowed = biscuit.append(BlockBuilder("".join(f"check if {check};\n" for check in checks)))
    text = f"{PREFIX}{kid}:{narrowed.to_base64().rstrip('=')}"
    if len(text) > TOKEN_CHARS_MAX:
        raise InputError(f"The token would be longer than {TOKEN_CHARS_MAX} characters. Delegate an earlier one.")
    return text


def inspect(token: str) -> Inspected:
    """Return the content of a Biscuit or a JWT. Raises InputError for anything else."""
    if not token.startswith(PREFIX):
        return _inspect_jwt(token)
    kid, biscuit = _open(token)
    claims = _claims(biscuit.block_source(0))
    checks = tuple(
        tuple(line for line in biscuit.block_source(index).split("\n") if line)
        for index in range(1, biscuit.block_count())
    )
    ends = [claims.get("exp"), *(_end(check) for block in checks for check in block)]
    stated = [float(end) for end in ends if isinstance(end, int | float)]
    return Inspected("biscuit", kid, True, claims, checks, min(stated, default=None))


def _open(token: str) -> tuple[str, Biscuit]:
    """Return the key's id and the chain, verified from the key in it, whose id is its hash (RFC 7638)."""
    try:
        from biscuit_auth import Biscuit, BiscuitValidationError, PublicKey, UnverifiedBiscuit
    except ImportError:
        raise InputError("Delegated tokens need a package: pip install 'herald-client[delegation]'.") from None
    form = _FORM.fullmatch(token)
    if form is None:
        what = (
            "This is a JWT: make it a Biscuit first, once (herald token biscuit)"
            if "." in token
            else "This is not a Biscuit"
        )
        raise InputError(f"{what}; a Biscuit begins with {PREFIX}.")
    kid, text = form.groups()
    text = text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4)
    try:
        carried = _KEY.findall(UnverifiedBiscuit.from_base64(text).block_source(0))
        key = next((x for x in carried if _thumbprint(x) == kid), None)
        if key is None:
            raise InputError("The Biscuit does not contain the key that it names: it was modified.")
        public = PublicKey(f"ed25519/{base64.urlsafe_b64decode(key + '=').hex()}")
        return kid, Biscuit.from_base64(text, public)
    except (BiscuitValidationError, ValueError):
        raise InputError("The Biscuit is damaged: its signatures are wrong.") from None


def _thumbprint(x: str) -> str:
    digest = hashlib.sha256(f'{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}'.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _place(rp: str, authority: str) -> str:
    if _ID.fullmatch(rp):
        return f'rp("{rp}")'
    name, below = (rp[:-1], True) if rp.endswith("/*") else (rp, False)
    name = name if name.startswith("/") else f"/{authority}/{name}"
    name = name if name.endswith("/") else name + "/"
    if not _NAME.fullmatch(name) or len(name) > 255:
        raise InputError(f"{rp!r} is neither an id, a name /authority/a/b/ nor the beginning of names, /authority/a/*.")
    return f'rp_name($name), $name.starts_with("{name}")' if below else f'rp_name("{name}")'


def _claims(source: str) -> dict[str, Any]:
    """Return the claims of an authority block, as the library prints it: suitable for display, not for decisions."""
    claims: dict[str, Any] = {}
    for found in _CLAIM.finditer(source):
        as_json, claim, text, other = found.groups()
        claims[claim] = text if text is not None and not as_json else _json(other if text is None else text)
    return claims


def _end(check: str) -> float | None:
    found = re.fullmatch(r"check if time\(\$\w+\), \$\w+ <=? (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ);", check)
    try:
        return datetime.fromisoformat(found[1]).timestamp() if found else None
    except ValueError:
        return None


def _inspect_jwt(token: str) -> Inspected:
    parts = token.split(".")
    try:
        header, claims = (json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))) for part in parts[:2])
    except (ValueError, RecursionError):
        header = claims = None
    if len(parts) != _JWT_PARTS or not isinstance(header, dict) or not isinstance(claims, dict):
        raise InputError(
            f"This is not a token: neither a JWT (three parts joined by dots) nor a Biscuit ({PREFIX}...)."
        )
    end = claims.get("exp")
    stated = float(end) if isinstance(end, int | float) else None
    return Inspected("jwt", str(header.get("kid", "")), None, claims, (), stated)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
