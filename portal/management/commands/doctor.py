"""`manage.py doctor [--all-settings] [--json]`: every check with its remedy, what is wrong first; with `--all-settings` every
setting in use. Exit code 1 when a check failed.

`--json` prints {"settings": [{name, value, unit, origin, about}], "state", "findings": [{subject, grade, says, do}],
"healthy"}; secrets are masked in both forms. `--settings-markdown` prints docs/settings.md.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from eventing.conf import config
from portal.supervisor.diagnosis import machine
from portal.supervisor.diagnosis.checks import all_findings
from portal.supervisor.diagnosis.findings import DiagnosisFinding, Grade
from portal.supervisor.diagnosis.settings_table import settings_in_use, settings_markdown
from portal.supervisor.terminal import Terminal

_WORST_FIRST = (Grade.FAIL, Grade.WARN, Grade.OK)
_MARKS = {"environment": "*", "profile": "+", "default": " "}
_PAINT = {Grade.OK: "ready", Grade.WARN: "warning", Grade.FAIL: "failed"}


class Command(BaseCommand):
    help = "Check the installation, and say what each acknowledgement level means here. With --all-settings list all settings."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON document")
        parser.add_argument("--all-settings", action="store_true", help="also list all settings with their origin")
        parser.add_argument("--settings-markdown", action="store_true", help="print docs/settings.md and check nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["settings_markdown"]:
            self.stdout.write(settings_markdown(), ending="")
            return
        findings = all_findings()
        healthy = all(finding.grade != Grade.FAIL for finding in findings)
        if options["json"]:
            self.stdout.write(json.dumps(self._document(findings, healthy), indent=2))
        else:
            self._print(findings, settings=options["all_settings"])
        sys.exit(0 if healthy else 1)

    def _document(self, findings: list[DiagnosisFinding], healthy: bool) -> dict[str, Any]:
        return {
            "settings": [asdict(setting) for setting in settings_in_use(config(), os.environ)],
            "state": machine.running_state(config()),
            "findings": [finding.as_dict() for finding in findings],
            "healthy": healthy,
        }

    def _print(self, findings: list[DiagnosisFinding], *, settings: bool) -> None:
        terminal = Terminal()
        terminal.line(terminal.paint(f"Herald, domain {config().domain}: {machine.running_state(config())}", "bold"))
        terminal.line()
        for finding in sorted(findings, key=lambda one: _WORST_FIRST.index(one.grade)):
            grade = terminal.paint(f"{finding.grade:<5}", _PAINT[finding.grade])
            terminal.line(f" {grade} {finding.subject:<17} {finding.says}")
            if finding.do:
                terminal.line(f"       {'':<17} {terminal.paint('→', 'dim')} {finding.do}")
        counts = {grade: sum(finding.grade == grade for finding in findings) for grade in Grade}
        terminal.line()
        terminal.line(f" {counts[Grade.OK]} ok, {counts[Grade.WARN]} warnings, {counts[Grade.FAIL]} failed")
        terminal.line()
        self._print_settings(terminal, whole=settings)

    def _print_settings(self, terminal: Terminal, *, whole: bool) -> None:
        """Print the settings: all, or those that are not defaults."""
        for setting in settings_in_use(config(), os.environ):
            if not whole and setting.origin == "default":
                continue
            mark = _MARKS[setting.origin]
            terminal.line(
                f" {mark} {setting.name:<34} {setting.value or '(empty)':<28} {terminal.paint(setting.unit, 'dim')}"
            )
        about = (
            "* from the environment, + from the profile, the others are defaults"
            if whole
            else "* from the environment, + from the profile; the other settings are defaults (herald doctor --settings)"
        )
        terminal.line(terminal.paint(f" {about}; docs/settings.md explains each", "dim"))
