"""`manage.py users`: the console's users from a terminal on the domain's machine.

users list
users add NAME [--role viewer|operator|administrator]     prints a one-time link
users role NAME ROLE                                      ROLE none takes the role away
users deactivate NAME | activate NAME
users reset NAME                                          takes the password away, prints a one-time link
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from eventing.access.selectors.console_users import role_of
from eventing.core.errors import ApplicationError
from eventing.core.roles import ROLES
from portal.accounts.services.login_links import INVITATION_S
from portal.accounts.services.users import (
    user_activate,
    user_deactivate,
    user_invite,
    user_named,
    user_reset,
    user_role_change,
    users_listed,
)

_ROLES = (*ROLES, "none")


class Command(BaseCommand):
    help = "List, add and change the users of the console."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        actions.add_parser("list", help="name, role, state and last login of each")
        add = actions.add_parser("add", help="invite a user; prints a one-time link")
        add.add_argument("name")
        add.add_argument("--role", choices=_ROLES, default="none")
        role = actions.add_parser("role", help="give another role")
        role.add_argument("name")
        role.add_argument("role", choices=_ROLES)
        for action, about in (
            ("deactivate", "let in no more; sessions and tokens end"),
            ("activate", "let in again"),
            ("reset", "take the password away; prints a one-time link"),
        ):
            actions.add_parser(action, help=about).add_argument("name")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._do(options)
        except ApplicationError as error:
            raise CommandError(error.detail) from None

    def _do(self, options: dict[str, Any]) -> None:
        role = "" if options.get("role") == "none" else options.get("role", "")
        name = options.get("name", "")
        match options["action"]:
            case "list":
                self._list()
            case "add":
                self._link(user_invite(name=name, role=role)[1], f"{name} is invited, {role or 'with no role yet'}.")
            case "role":
                user_role_change(user_id=self._id(options), role=role)
                self._say(f"{name} now has {f'the role {role}' if role else 'no role'}.")
            case "deactivate":
                user_deactivate(user_id=self._id(options))
                self._say(f"{name} is deactivated; sessions are ended and tokens revoked.")
            case "activate":
                user_activate(user_id=self._id(options))
                self._say(f"{name} is activated.")
            case "reset":
                self._link(user_reset(user_id=self._id(options))[1], f"The password of {name} is removed.")

    def _link(self, link: str, about: str) -> None:
        """Print the link alone to stdout, for programs, and its purpose to stderr."""
        self._say(f"{about} Give the user this link, which logs in once, within {INVITATION_S // 3600} hours.")
        self.stdout.write(link)

    def _say(self, text: str) -> None:
        self.stderr.write(text, style_func=str)

    def _list(self) -> None:
        for user in users_listed():
            state = "active" if user.is_active else "deactivated"
            seen = f"{user.last_login:%Y-%m-%d %H:%M} UTC" if user.last_login else "never logged in"
            self.stdout.write(f"{user.get_username():<32} {role_of(user) or 'no role':<14} {state:<12} {seen}")

    def _id(self, options: dict[str, Any]) -> int:
        user = user_named(options["name"])
        if user is None:
            raise CommandError(f"There is no user {options['name']!r}.")
        return user.pk
