"""Exchange of a domain's processes for new ones, one after another: after an upgrade of the source, or to free memory.

A gateway: a new process starts on the same listening socket -> it is ready -> the present one accepts no more and closes its sessions
over HERALD_DRAIN_S -> the next one. Connections that are opened meanwhile are accepted by those that run. All other processes but Redis follow:
each is stopped, and started again. A new process that is not ready ends the exchange: the present gateway stays.
"""

from __future__ import annotations

import signal

from portal.supervisor.child import Child
from portal.supervisor.process_group import ProcessGroup
from portal.supervisor.terminal import Terminal


class Exchange:
    """One exchange.

    Args:
        group: the processes.
        terminal: where progress and failures are reported.
        ready_within_s: time within which a new process must be ready.
    """

    def __init__(self, group: ProcessGroup, terminal: Terminal, ready_within_s: float) -> None:
        self._group, self._terminal, self._ready_within_s = group, terminal, ready_within_s

    def run(self) -> bool:
        """Exchange all processes. Returns False if it ended early. Raises StopAsked when the operator requests a stop."""
        gateways = [child for child in self._group.children if child.spec.is_exchanged_beside]
        others = [child for child in self._group.children if child.spec.probe is None and child not in gateways]
        return all(map(self._beside, gateways)) and all(map(self._in_place, others))

    def _beside(self, old: Child) -> bool:
        name = old.spec.name
        try:
            new = self._group.add_beside(old)
        except OSError as error:
            self._terminal.note(name, f"a new process could not be started ({error}); the present one stays")
            return False
        self._group.wait_until(lambda: new.ready or not new.running, self._ready_within_s)
        if not new.ready:
            failed = f"ended at once ({new.how_ended})" if not new.running else "was not ready in time"
            reason = f": {new.last_warning or new.last_line}" if new.last_line else ""
            self._terminal.note(name, f"the new process {failed}{reason}; the present one stays")
            self._end(new, 0.0)
            return False
        self._group.take_over(new, old)
        old.send(signal.SIGHUP if old.ready else signal.SIGTERM)
        self._end(old, old.spec.drain_s + old.spec.stop_within_s)
        self._terminal.state(name, "exchanged")
        return True

    def _in_place(self, child: Child) -> bool:
        before = child.pid
        if before is not None:
            child.send(child.spec.stop_signal if child.ready else signal.SIGTERM)
            if not self._group.wait_until(lambda: child.pid != before, child.spec.stop_within_s):
                child.send_group(signal.SIGKILL)
        ready = self._group.wait_until(lambda: child.ready and child.pid != before, self._ready_within_s)
        if not ready:
            self._terminal.note(child.spec.name, "the new process was not ready in time")
        return ready

    def _end(self, process: Child, within_s: float) -> None:
        """Wait for the end of a process beside the children, and kill it if it is late."""
        if not self._group.wait_until(lambda: not process.running, within_s):
            process.send_group(signal.SIGKILL)
            self._group.wait_until(lambda: not process.running, self._ready_within_s)
