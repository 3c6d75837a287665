"""What signals ask of the supervisor's loop: a stop, new processes, or the end of a drain. Real processes, no domain."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from demo.harness.servers import ROOT, wait_for
from portal.supervisor.child import ChildSpec
from portal.supervisor.parent_watchdog import READY_FD, death_signal
from portal.supervisor.process_group import ProcessGroup
from portal.supervisor.terminal import Terminal

WITHIN_S = 60.0
WATCH = """
import pathlib, sys
from portal.supervisor.process_group import ProcessGroup
from portal.supervisor.terminal import Terminal
group = ProcessGroup(pathlib.Path(sys.argv[1]), Terminal(), lambda: None)
with group.signals_caught():
    print("watches", flush=True)
    group.watch()
print("stop" if group.stop_asked else "exchange", flush=True)
"""
SLOW = """
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: print("drains", flush=True))
os.write(int(os.environ["SUPERVISOR_READY_FD"]), b"ready\\n")
time.sleep(600)
"""
DRAIN = """
import os, pathlib, signal, sys
from portal.supervisor.child import ChildSpec
from portal.supervisor.process_group import ProcessGroup
from portal.supervisor.terminal import Terminal
spec = ChildSpec("slow", [sys.executable, "-c", sys.argv[2]], pathlib.Path("/"), dict(os.environ), 30.0,
                 stop_signal=signal.SIGINT, drain_s=300.0)
group = ProcessGroup(pathlib.Path(sys.argv[1]), Terminal(), lambda: None, drains=sys.argv[3] == "drains")
with group.signals_caught():
    child = group.add(spec)
    assert group.wait_until(lambda: child.ready, 60)
    print("watches", flush=True)
    group.watch()
    print("may drain" if group.may_drain else "at once", flush=True)
    if group.may_drain:
        group.drain([child])
    group.stop([child])
    print(child.how_ended, flush=True)
"""


def run(*arguments: str, terminal: int | None = None) -> subprocess.Popen[str]:
    """Start a program that says when it watches."""
    bind = death_signal(signal.SIGKILL)

    def begin() -> None:
        bind()
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored, and the supervisor leaves it so
        if terminal is not None:
            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        [sys.executable, "-c", *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=begin,
        pass_fds=() if terminal is None else (terminal,),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "watches\n"
    return process


def outcome(process: subprocess.Popen[str]) -> list[str]:
    """What it says until its end."""
    return process.communicate(timeout=WITHIN_S)[0].splitlines()


def test_a_hangup_of_a_service_asks_for_an_exchange(tmp_path: Path) -> None:
    process = run(WATCH, str(tmp_path))
    process.send_signal(signal.SIGHUP)
    assert outcome(process) == ["exchange"]


@pytest.mark.parametrize("closed", [False, True])
def test_a_hangup_in_a_terminal_asks_for_a_stop_once_that_is_closed(tmp_path: Path, closed: bool) -> None:
    own_end, terminal = pty.openpty()
    process = run(WATCH, str(tmp_path), terminal=terminal)
    os.close(terminal)
    if closed:
        os.close(own_end)  # the kernel sends the signal
    else:
        process.send_signal(signal.SIGHUP)
    assert outcome(process) == ["stop" if closed else "exchange"]
    if not closed:
        os.close(own_end)


def test_a_second_signal_ends_a_drain(tmp_path: Path) -> None:
    process = run(DRAIN, str(tmp_path), SLOW, "drains")
    process.send_signal(signal.SIGTERM)
    assert process.stdout is not None
    assert process.stdout.readline() == "may drain\n"
    wait_for(lambda: "drains" in (tmp_path / "slow.log").read_text(), about="the child drains")
    process.send_signal(signal.SIGTERM)
    assert outcome(process) == ["killed by SIGINT"]


@pytest.mark.parametrize(("number", "drains"), [(signal.SIGINT, "drains"), (signal.SIGTERM, "ends with its stores")])
def test_a_stop_is_at_once_by_ctrl_c_and_where_the_domain_ends(
    tmp_path: Path, number: signal.Signals, drains: str
) -> None:
    process = run(DRAIN, str(tmp_path), SLOW, drains)
    process.send_signal(number)
    assert outcome(process) == ["at once", "killed by SIGINT"]


def test_a_child_that_ends_as_it_becomes_ready_is_a_child_that_ended(tmp_path: Path) -> None:
    program = f"import os; os.write(int(os.environ['{READY_FD}']), b'ready\\n')"
    group = ProcessGroup(tmp_path, Terminal(), lambda: None)
    child = group.add(ChildSpec("brief", [sys.executable, "-c", program], tmp_path, {}, 1.0))
    assert child.pid is not None
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # both pipes have ended before the group looks
    assert not group.wait_until(lambda: False, WITHIN_S)
    assert group.failed == [(child, "exit code 0")]
    group.close()
