"""`manage.py login_link [USER]`: print a one-time link to the console, for an administrator who has no other way in."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from eventing.conf import config
from portal.accounts.services.login_links import LOGIN_LINK_S, ensure_administrator, login_link_create
from portal.accounts.services.users import user_named


class Command(BaseCommand):
    help = f"Print a link that logs a user into the console once, within {LOGIN_LINK_S // 60} minutes."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", nargs="?", help="the user's name; without it the first administrator")

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["user"]
        user = user_named(name) if name else ensure_administrator()
        if user is None or not user.is_active:
            raise CommandError(f"There is no active user {name!r}." if name else "There is no active administrator.")
        self.stdout.write(config().base_url + login_link_create(user))
