"""`manage.py run` (that is, `make run`): a whole domain in the foreground. See portal/supervisor."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand

from portal.supervisor.command import run


class Command(BaseCommand):
    help = "Run the whole domain: Redis, gateways, worker and forwarder. Ctrl-C stops it."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        sys.exit(run())
