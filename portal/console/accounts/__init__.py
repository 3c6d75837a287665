"""Users of the console and their roles, one-time login links, throttled logins, sessions.

There are no default passwords. The first start makes the administrator `admin` without a usable password and prints a
link; `manage.py login_link` makes another at any time. Others are invited by a link of their own; no password travels.
"""

from __future__ import annotations

from portal.console.accounts.login_links import (
    ADMINISTRATOR_NAME,
    INVITATION_S,
    LOGIN_LINK_S,
    ensure_administrator,
    login_link_create,
    login_link_redeem,
    login_url_create,
)

__all__ = [
    "ADMINISTRATOR_NAME",
    "INVITATION_S",
    "LOGIN_LINK_S",
    "ensure_administrator",
    "login_link_create",
    "login_link_redeem",
    "login_url_create",
]
