"""The act with twelve domains that nobody wires: it plays by itself, and then carries out typed commands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from demo.twelve import NAMES, Twelve

HELP = "map, send NAME, kill NAME, start NAME, quit"
Say = Callable[[str], None]


def run(folder: Path, say: Say) -> int:
    """Play the act, then carry out commands until `quit`, the end of the input, or Ctrl-C. Returns 0 if it was stopped in order."""
    twelve = Twelve(folder, say)
    try:
        _play(twelve, say)
        _commands(twelve, say)
    except KeyboardInterrupt:
        pass
    except AssertionError as error:  # how the harness reports a failure
        say(f"\nThe demo cannot continue: {error}")
        return 1
    finally:
        say("\nStopping twelve domains ...")
        try:
            twelve.stop()
        except KeyboardInterrupt:
            twelve.end_now()
        say("Stopped.")
    return 0


def _play(twelve: Twelve, say: Say) -> None:
    twelve.start()
    twelve.join()
    twelve.share()
    for name in (NAMES[5], NAMES[9], NAMES[5]):
        twelve.send(name)
    say(twelve.console())
    twelve.kill_some()
    sender = twelve.up()[0]
    for _ in range(2):
        twelve.send(sender)


def _commands(twelve: Twelve, say: Say) -> None:
    say(f"\nIt is your turn: {HELP}")
    for line in sys.stdin:
        word, _, name = line.strip().partition(" ")
        if word == "quit":
            return
        if word == "map":
            for shown in twelve.map_lines():
                say(shown)
        elif word not in _ACTS:
            say(f"{word!r} is not a command. Commands: {HELP}.")
        elif name not in NAMES:
            say(f"{word} needs a domain: {', '.join(NAMES)}.")
        else:
            _ACTS[word](twelve, name)


_ACTS: dict[str, Callable[[Twelve, str], None]] = {
    "send": Twelve.send,
    "kill": Twelve.kill,
    "start": Twelve.restart,
}
