"""`manage.py run`: a domain in the foreground, until Ctrl-C. Does not load Django's applications (docs/decisions/0110)."""

from __future__ import annotations

import os

from eventing.conf import config
from portal.logs.log_lines import catch_the_rest
from portal.supervisor.domain import Supervisor
from portal.supervisor.json_terminal import JsonTerminal
from portal.supervisor.terminal import Terminal


def run() -> int:
    """Run the domain. Returns the exit code."""
    os.environ.setdefault("HERALD_PROCESS", "supervisor")
    catch_the_rest(config().log_format)
    terminal = JsonTerminal() if config().log_format == "json" else Terminal()
    return Supervisor(config(), terminal).run()
