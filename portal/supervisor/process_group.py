"""Loop that supervises children: reads their output, restarts them when they fail, stops them in order.

One thread, one selector. Signals wake it through a pipe, so nothing polls except the probe of a child that cannot
report its readiness.

| signal | what it asks for |
|---|---|
| SIGTERM | a stop; a second one, or Ctrl-C, ends the time in which gateways close their sessions |
| SIGINT (Ctrl-C) | a stop at once; a second one kills every child |
| SIGHUP | new processes, one after another (exchange.py); a stop, if it means that the terminal has closed; nothing under nohup |
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType

from portal.supervisor.child import Child, ChildSpec
from portal.supervisor.output import Shown
from portal.supervisor.terminal import Terminal

PROBE_EVERY_S = 0.05
IDLE_STEP_S = 1.0
STALLED_S = 3.0
"""Seconds between two steps after which this process is taken to have stood still, and its children with it."""
KILLED_WITHIN_S = 1.0
"""The kernel needs a moment to take a process down after SIGKILL; one stuck in the disk driver may take longer."""

SECOND_CTRL_C_AFTER_S = 0.3
"""One Ctrl-C may arrive twice (from the terminal and from make); a second press is later than this."""

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
TERMINAL = "/dev/tty"


class StopAsked(Exception):
    """Raised when the operator requests a stop during a wait."""


class ProcessGroup:
    """The children of one domain.

    Args:
        changed: called whenever a child starts, becomes ready or ends.
        drains: whether a stop by SIGTERM leaves gateways time to close their sessions.
    """

    def __init__(
        self, log_folder: Path, terminal: Terminal, changed: Callable[[], None], *, drains: bool = False
    ) -> None:
        self.children: list[Child] = []
        self.beside: list[Child] = []
        """Processes beside the child of the same name: one that is to replace it, or one that it replaced. They are not restarted."""
        self.restarts = False
        """True while children that end are restarted. Off while starting (an end is a failure) and while stopping."""
        self.failed: list[tuple[Child, str]] = []
        """Children that ended while `restarts` was off, and how."""
        self._log_folder, self._terminal, self._changed = log_folder, terminal, changed
        self._selector = selectors.DefaultSelector()
        self._shown: dict[str, Shown] = {}
        self._stop_asked_at: float | None = None
        self._controlling_terminal: int | None = None
        self.may_drain = False
        """True if the stop that was requested leaves gateways time to close their sessions; no longer after a second signal."""
        self._drains = drains
        self.exchange_asked = False
        self._stepped_at = time.monotonic()

    @property
    def stop_asked(self) -> bool:
        return self._stop_asked_at is not None

    @property
    def everyone(self) -> list[Child]:
        """All processes, also those beside the children."""
        return [*self.children, *self.beside]

    def add(self, spec: ChildSpec) -> Child:
        """Start a child and watch it from now on. Raises OSError when the system cannot start it."""
        child = Child(spec, self._log_folder)
        self._shown[spec.name] = Shown(
            lambda text: self._terminal.note(spec.name, text), more=f"... more of this in {child.log.path}"
        )
        self.children.append(child)
        self._start(child)
        return child

    def wait_until(self, condition: Callable[[], bool], within_s: float) -> bool:
        """Keep watching until `condition` holds or a child failed; False after `within_s`. Raises StopAsked."""
        deadline = time.monotonic() + within_s
        while not condition() and not self.failed:
            if self.stop_asked:
                raise StopAsked
            if time.monotonic() >= deadline:
                return False
            self._step(deadline)
        return not self.failed

    def add_beside(self, child: Child) -> Child:
        """Start a process that is to replace `child`, and watch it. Raises OSError when the system cannot start it."""
        new = Child(child.spec, self._log_folder, child.log)
        self.beside.append(new)
        try:
            self._start(new)
        except OSError:
            self.beside.remove(new)
            raise
        return new

    def take_over(self, new: Child, old: Child) -> None:
        """Make `new`, which runs beside `old`, the child; `old` is not restarted any more."""
        self.children[self.children.index(old)] = new
        self.beside.remove(new)
        old.start_due = 0.0
        if old.running:
            self.beside.append(old)
        self._changed()

    def watch(self) -> None:
        """Keep the domain running until the operator requests a stop or an exchange."""
        self.restarts = True
        while not self.stop_asked and not self.exchange_asked:
            self._step(time.monotonic() + IDLE_STEP_S)

    def drain(self, children: Sequence[Child]) -> None:
        """Have children close their sessions over time, until all have ended or a second signal is received."""
        self.restarts = False
        deadline = time.monotonic() + max((child.spec.drain_s for child in children), default=0.0)
        for child in children:
            child.start_due = 0.0
            child.send(signal.SIGTERM)
        while self.may_drain and any(child.running for child in children) and time.monotonic() < deadline:
            self._step(deadline)

    def stop(self, children: Sequence[Child]) -> None:
        """Stop children together: a signal in the given order, and SIGKILL after ChildSpec.stop_within_s."""
        self.restarts = False
        begun = time.monotonic()
        for child in children:
            child.start_due = 0.0
            child.send(child.spec.stop_signal if child.ready else signal.SIGTERM)
        for child in sorted(children, key=lambda child: child.spec.stop_within_s):
            self._wait_for_end([child], begun + child.spec.stop_within_s)
            if child.running:
                self._terminal.note(child.spec.name, "did not stop in time and was killed")
                child.send_group(signal.SIGKILL)
        self._wait_for_end(children, time.monotonic() + KILLED_WITHIN_S)

    def close(self) -> None:
        """Close log files and the selector, when all children have been stopped."""
        for child in self.children:
            child.log.close()
        self._selector.close()

    @contextlib.contextmanager
    def signals_caught(self) -> Iterator[None]:
        """Handle signals within the block (see the head of this file)."""
        with contextlib.suppress(OSError):  # without a terminal, as a service
            self._controlling_terminal = os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._selector.register(reader, selectors.EVENT_READ, lambda: _drain(reader))
        before = {number: signal.signal(number, self._on_stop) for number in _STOP_SIGNALS}
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._on_hangup)
        if before[signal.SIGHUP] is signal.SIG_IGN:  # nohup: the domain is to outlive its terminal
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        wakeup_before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(wakeup_before)
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(reader)
            os.close(writer)
            if self._controlling_terminal is not None:
                os.close(self._controlling_terminal)

    def _on_stop(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._stop_asked_at is None:
            self._stop_asked_at = now
            self.may_drain = self._drains and number == signal.SIGTERM
        elif self.may_drain:
            self._stop_asked_at, self.may_drain = now, False
        elif number == signal.SIGINT and now - self._stop_asked_at > SECOND_CTRL_C_AFTER_S:
            for child in self.everyone:
                child.send_group(signal.SIGKILL)

    def _on_hangup(self, _number: int, _frame: FrameType | None) -> None:
        if self._terminal_lost():
            self._on_stop(signal.SIGINT, None)
        else:
            self.exchange_asked = True

    def _terminal_lost(self) -> bool:
        """Return whether there was a controlling terminal, and it has been closed."""
        if self._controlling_terminal is None:
            return False
        try:
            os.tcgetpgrp(self._controlling_terminal)
        except OSError:
            return True
        return False

    def _step(self, deadline: float) -> None:
        """Run one round: wait for events until `deadline`, and handle them."""
        for key, _ in self._selector.select(max(0.0, min(deadline, self._next_due()) - time.monotonic())):
            key.data()
        self._forgive_stall()
        for child in self.everyone:
            how = child.ended()
            if how is not None:
                self._on_end(child, how)
            elif child.start_due and time.monotonic() >= child.start_due:
                self._start_again(child)
            elif self.restarts and child.is_dead:
                self._terminal.note(
                    child.spec.name, f"has done no work for {child.spec.dead_after_s:g} s and is killed"
                )
                child.proved_at = time.monotonic()  # reported once
                child.send_group(signal.SIGKILL)
            elif child.running and not child.ready and child.spec.probe is not None and child.spec.probe():
                self._on_ready(child)

    def _forgive_stall(self) -> None:
        """Count the time in which this process stood still, as on a paused machine, against no child: none could prove its work."""
        now = time.monotonic()
        away_s, self._stepped_at = now - self._stepped_at, now
        if away_s > STALLED_S:
            for child in self.everyone:
                child.proved_at += away_s

    def _next_due(self) -> float:
        now = time.monotonic()
        due = [child.start_due for child in self.children if child.start_due]
        if any(child.running and not child.ready and child.spec.probe for child in self.children):
            due.append(now + PROBE_EVERY_S)
        return min(due, default=now + IDLE_STEP_S)

    def _start(self, child: Child) -> None:
        child.start()
        child.start_due = 0.0
        self._selector.register(child.output_fd, selectors.EVENT_READ, lambda: self._on_output(child))
        self._selector.register(child.ready_fd, selectors.EVENT_READ, lambda: self._on_ready_pipe(child))
        self._changed()

    def _start_again(self, child: Child) -> None:
        try:
            self._start(child)
        except OSError as error:  # no memory or no process to be had just now
            self._terminal.note(
                child.spec.name, f"could not be started ({error}); next try in {child.plan_restart():g} s"
            )

    def _on_output(self, child: Child) -> None:
        if child.output_fd not in self._selector.get_map():
            return  # it ended as it became ready: `_on_ready` has read the end already
        lines = child.read_lines()
        if lines is None:
            self._selector.unregister(child.output_fd)
            return
        for line in lines:
            if child.spec.is_warning(line):
                child.last_warning = line
                # output of Redis while it starts and stops is not shown
                if child.spec.probe is None or (child.ready and self.restarts):
                    self._shown[child.spec.name].line(line)

    def _on_ready_pipe(self, child: Child) -> None:
        was_ready = child.ready
        if not child.read_ready():
            self._selector.unregister(child.ready_fd)
        elif not was_ready:
            self._on_ready(child)

    def _on_ready(self, child: Child) -> None:
        self._on_output(child)
        child.note_ready()
        if self.restarts and child not in self.beside:
            self._terminal.note(child.spec.name, "runs again")
        self._changed()

    def _on_end(self, child: Child, how: str) -> None:
        for descriptor in (child.output_fd, child.ready_fd):
            if descriptor == child.output_fd:
                self._on_output(child)
            if descriptor in self._selector.get_map():
                self._selector.unregister(descriptor)
        child.close_pipes()
        if child in self.beside:
            self.beside.remove(child)
        elif self.restarts:
            self._terminal.note(child.spec.name, f"exited ({how}); restarting in {child.plan_restart():g} s")
        else:
            self.failed.append((child, how))
        self._changed()

    def _wait_for_end(self, children: Sequence[Child], deadline: float) -> None:
        while any(child.running for child in children) and time.monotonic() < deadline:
            self._step(deadline)


def _drain(descriptor: int) -> None:
    with contextlib.suppress(BlockingIOError):
        while os.read(descriptor, 4096):
            pass
