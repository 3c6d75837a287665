"""`manage.py run` (that is, `make run`): a whole domain in the foreground. See portal/supervisor."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand

from eventing.conf import config
from portal.supervisor.domain import Supervisor
from portal.supervisor.terminal import Terminal


class Command(BaseCommand):
    help = "Run the whole domain: Redis, gateways, worker and beat. Ctrl-C stops it."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        sys.exit(Supervisor(config(), Terminal()).run())
