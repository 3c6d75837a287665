"""Commands that can be typed while the demo runs."""

from __future__ import annotations

import threading
from collections.abc import Callable

import httpx

from demo.network import Five


class Unknown(Exception):
    """The typed text is no command, or names no domain; the message states the valid ones."""


class Acts:
    """Carries out typed commands; `say` gets the results."""

    def __init__(self, five: Five, say: Callable[[str], None]) -> None:
        self._five = five
        self._say = say
        self._homes = five.home_acts(lambda line: say(f"> {line.strip()}"))
        self._known: dict[str, Callable[[str], str]] = {
            "cut": self._cut,
            "heal": self._heal,
            "forge": self._forge,
            "kill": self._kill,
            "start": self._start,
            "lift": self._lift,
            "drain": lambda name: self._apart(self._homes.drain, name, "is drained"),
            "undrain": lambda name: self._apart(self._homes.undrain, name, "ends its drain"),
            "lose": lambda name: self._apart(self._homes.lose, name, "is to be lost"),
        }

    def do(self, text: str) -> None:
        """Carry out `WORD NAME`. Raises Unknown."""
        word, _, name = text.partition(" ")
        if word == "fame":
            raise Unknown("fame is an act of domains that know each other's loads by an overlay: make demo ARGS=self")
        act = self._known.get(word)
        if act is None:
            raise Unknown(
                f"{word!r} is not a command. Commands: {', '.join(self._known)} with a domain's name, and quit."
            )
        name = name.strip()
        if name not in self._five.names:
            raise Unknown(f"{word} needs a domain: {', '.join(self._five.names)}.")
        self._say(f"> {act(name)}")

    def _apart(self, act: Callable[[str], None], name: str, what: str) -> str:
        """Begin an act that takes longer than the view may stand still; it reports by itself."""

        def play() -> None:
            try:
                act(name)
            except (
                AssertionError,
                httpx.TransportError,
            ) as error:  # how the harness reports a failure; a domain is down
                self._say(f"> The act cannot continue: {error}")

        threading.Thread(target=play, name="act", daemon=True).start()
        return f"{name} {what}."

    def _cut(self, name: str) -> str:
        self._five.cut(name)
        return f"{name} is partitioned from all others; its monitor continues."

    def _heal(self, name: str) -> str:
        self._five.heal(name)
        return f"{name} is connected again."

    def _forge(self, name: str) -> str:
        return self._five.forge(name)

    def _kill(self, name: str) -> str:
        self._five.kill_one(name)
        return f"{name} was killed: all its processes, by SIGKILL."

    def _start(self, name: str) -> str:
        self._five.start_one(name)
        return f"{name} starts again on its data."

    def _lift(self, name: str) -> str:
        lifted = self._five.lift(name)
        return f"{', '.join(lifted) or 'Nobody'} lifted the quarantine of {name}."
