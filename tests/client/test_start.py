"""What a start of the command imports: the time of a start follows it, and is not measured on busy machines."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

ASK = """
import sys, json
from herald.commands import main
sys.argv = ["herald", *{arguments!r}]
try:
    main()
except SystemExit:
    pass
print(json.dumps(sorted(name for name, module in sys.modules.items() if module is not None)))
"""
HEAVY = {"httpx", "websockets", "asyncio", "psutil", "rich", "biscuit_auth", "cryptography", "ssl"}


def imported(*arguments: str) -> set[str]:
    """The modules that a command has imported at its end."""
    command = [sys.executable, "-c", ASK.format(arguments=list(arguments))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    names: list[str] = json.loads(done.stdout.splitlines()[-1])
    return set(names)


@pytest.mark.parametrize(
    "arguments", [["--version"], ["profile", "list"], ["completion", "zsh"], ["publsh"]], ids=" ".join
)
def test_what_asks_no_domain_imports_no_client(arguments: list[str]) -> None:
    assert imported(*arguments) & HEAVY == set()


def test_a_list_imports_its_own_command_and_the_client_only() -> None:
    found = imported("rp", "list", "--url", "http://127.0.0.1:1")
    assert "httpx" in found, "the test sees what is imported"
    assert not found & {"rich", "psutil", "biscuit_auth", "cryptography"}
    commands = {name for name in found if name.startswith("herald.commands.")}
    assert not commands & {
        "herald.commands.peer",
        "herald.commands.replay",
        "herald.commands.hook",
        "herald.commands.monitor",
    }
