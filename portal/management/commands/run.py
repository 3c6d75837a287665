"""`manage.py run` (that is, `make run`): a whole domain in the foreground. See portal/supervisor."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand

from eventing.conf import config
from portal.logs.log_lines import catch_the_rest
from portal.supervisor.domain import Supervisor
from portal.supervisor.json_terminal import JsonTerminal
from portal.supervisor.terminal import Terminal


class Command(BaseCommand):
    help = "Run the whole domain: Redis, gateways, worker and beat. Ctrl-C stops it."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        os.environ.setdefault("HERALD_PROCESS", "supervisor")
        catch_the_rest(config().log_format)
        terminal = JsonTerminal() if config().log_format == "json" else Terminal()
        sys.exit(Supervisor(config(), terminal).run())
