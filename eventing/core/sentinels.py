"""Connections to Sentinels, which may demand other credentials than the servers that they watch: parameters of an address. Pure."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote, unquote

SWITCHES = {"0": False, "1": True}
FORM = "?sentinel_user=USER&sentinel_password=PASSWORD&sentinel_tls=1"


class SentinelAccess(NamedTuple):
    """Credentials of the Sentinels, and whether connections to them use TLS.

    Attributes:
        user: empty for the user `default`.
        password: empty where they demand none.
        tls: connections use TLS.
    """

    user: str = ""
    password: str = ""
    tls: bool = False

    def url_of(self, place: str) -> str:
        """Return the URL of the Sentinel at this host and port."""
        credentials = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}@" if self.password else ""
        return f"redis{'s' if self.tls else ''}://{credentials}{place}"


def parameters_of(query: str) -> dict[str, str]:
    """Read the parameters of an address. A `+` stands for itself, which it does not in forms of HTML: passwords may have one.

    Raises ValueError for one that is named twice or has no value.
    """
    found: dict[str, str] = {}
    for part in query.split("&") if query else ():
        name, _, value = part.partition("=")
        if name in found or not value:
            raise ValueError("a parameter that is named twice or has no value")
        found[name] = unquote(value)
    return found


def sentinel_access(parameters: dict[str, str]) -> SentinelAccess:
    """Take what concerns the Sentinels out of the parameters of an address.

    Raises ValueError for a user without a password, and for a switch that is neither 0 nor 1.
    """
    user, password = parameters.pop("sentinel_user", ""), parameters.pop("sentinel_password", "")
    tls = SWITCHES.get(parameters.pop("sentinel_tls", "0"))
    if tls is None or (user and not password):
        raise ValueError("a user without a password, or an unknown value of sentinel_tls")
    return SentinelAccess(user, password, tls)
