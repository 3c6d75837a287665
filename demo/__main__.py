"""`python -m demo`: start five domains, show their state, carry out typed commands, stop everything. `python -m demo twelve`: an act with
twelve domains that nobody wires (demo/unwired.py). `python -m demo self`: five that place replicas and move readers and homes by themselves
(demo/self_administered.py).

The five domains are complete `make run` with separate data in a temporary folder, in a ring with one chord. They are
started, cut and killed by demo/harness/network.py, and read over their public interfaces only.
"""

from __future__ import annotations

import argparse
import queue
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from demo import self_administered, unwired
from demo.acts import Acts, Unknown
from demo.network import Five
from demo.observer import Observer
from demo.screen import HELP, Screen
from demo.snapshot import Snapshot, news

REFRESH_S = 0.5
TITLE = "Herald: five domains, a ring with one chord, one rendezvous point"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo until `quit`, the end of the input in a script, or Ctrl-C. Returns 0 if it started and was stopped
    in order.
    """
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--every-s", type=float, default=1.0, help="seconds between the events of one monitor (default: 1)"
    )
    parser.add_argument(
        "act",
        nargs="?",
        choices=("five", "twelve", "self"),
        default="five",
        help="five domains in a ring, twelve that nobody wires, or five that administrate themselves (default: five)",
    )
    parser.add_argument("--folder", type=Path, help="folder for the domains' data, which is kept (default: temporary)")
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    with tempfile.TemporaryDirectory(prefix="herald-demo-", ignore_cleanup_errors=True) as temporary:
        folder = chosen.folder or Path(temporary)
        if chosen.act == "twelve":
            return unwired.run(folder, _say)
        if chosen.act == "self":
            return self_administered.run(folder, _say)
        five = Five(folder, _say)
        try:
            five.start(chosen.every_s)
            _interact(five)
        except KeyboardInterrupt:
            pass
        except AssertionError as error:  # how the harness reports a failure
            _say(f"\nThe demo cannot continue: {error}")
            return 1
        finally:
            _stop(five)
    return 0


def _interact(five: Five) -> None:
    """Show the state and carry out commands until `quit`."""
    screen = Screen(TITLE)
    observer = Observer(five.clients, five.rp, five.is_cut)
    acts = Acts(five, screen.say)
    typed: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read_lines, args=(typed,), name="input", daemon=True).start()
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        _say(f"Commands: {HELP}")
    before: Snapshot | None = None
    try:
        while True:
            snapshot = observer.snapshot()
            for sentence in news(before or snapshot, snapshot):
                screen.say(sentence)
            screen.show(snapshot)
            before = snapshot
            if not _obeyed(typed, acts, screen):
                return
    finally:
        observer.close()


def _obeyed(typed: queue.SimpleQueue[str], acts: Acts, screen: Screen) -> bool:
    """Wait for the next refresh, carrying out typed commands at once; False when it is time to quit."""
    deadline = time.monotonic() + REFRESH_S
    while (left := deadline - time.monotonic()) > 0:
        try:
            text = typed.get(timeout=left)
        except queue.Empty:
            return True
        screen.typed()
        if text == "quit":
            return False
        try:
            acts.do(text)
        except Unknown as unknown:
            screen.say(str(unknown))
    return True


def _read_lines(typed: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        if line.strip():
            typed.put(line.strip())


def _stop(five: Five) -> None:
    """Stop all; a second Ctrl-C does not wait."""
    _say("\nStopping five domains ...")
    try:
        five.stop()
    except KeyboardInterrupt:
        five.kill()
    _say("Stopped.")


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
