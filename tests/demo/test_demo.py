"""`make demo` as a user has it: it comes up, obeys what is typed, shows what happens, and stops in time."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import psutil
import pytest

from demo.harness.servers import ROOT, as_at_a_terminal, wait_for
from demo.screen import table
from demo.snapshot import Detected, DomainView, LinkSnapshot, Snapshot, news
from portal.supervisor.parent_watchdog import death_signal
from tests.processes import alive

STARTED_WITHIN_S = 300.0  # ten times `make run` on a busy machine
STOPPED_WITHIN_S = 60.0


class Demo:
    """A running `python -m demo` whose output goes to a file, and whose input is typed here."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.output_path = folder / "output"
        with self.output_path.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "demo", *arguments],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=as_at_a_terminal(death_signal(signal.SIGTERM)),
            )
        assert self._process.stdin is not None
        self._input: IO[bytes] = self._process.stdin

    @property
    def output(self) -> str:
        return self.output_path.read_text(errors="replace")

    def type(self, line: str) -> int:
        """Type a line; the length of the output before, for `shows`."""
        before = len(self.output)
        self._input.write(f"{line}\n".encode())
        self._input.flush()
        return before

    def shows(self, text: str, within_s: float = 120.0, *, after: int = 0) -> None:
        """Wait until it has printed `text`, after so many characters."""

        def shown() -> bool:
            assert self._process.poll() is None, f"the demo has ended:\n{self.output}"
            return text in self.output[after:]

        try:
            wait_for(shown, within_s, every_s=0.1)
        except AssertionError:
            raise AssertionError(f"{text!r} was not shown within {within_s:g} s:\n{self.output}") from None

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self._process.pid).children(recursive=True)

    def end(self, number: signal.Signals | None = None) -> int:
        """Wait for its end, after a signal if stated; its exit code."""
        if number is not None:
            self._process.send_signal(number)
        return self._process.wait(STOPPED_WITHIN_S)

    def kill(self) -> None:
        if self._process.poll() is None:
            left = self.children()
            for process in [psutil.Process(self._process.pid), *left]:
                process.kill()
            self._process.wait()
        self._input.close()


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    made = Demo(tmp_path, "--every-s", "0.5")
    yield made
    made.kill()


@pytest.mark.long
@pytest.mark.processes
@pytest.mark.timeout(900)
def test_the_demo_starts_obeys_cut_heal_and_forge_and_ctrl_c_stops_all_of_it(demo: Demo) -> None:
    demo.shows("lacks", STARTED_WITHIN_S)
    processes = demo.children()
    assert len(processes) >= 20
    typed = demo.type("cut gamma")
    demo.shows("gamma is partitioned", after=typed)
    demo.shows("cannot reach gamma", after=typed)
    typed = demo.type("heal gamma")
    demo.shows("reaches gamma again", after=typed)
    typed = demo.type("forge beta")
    demo.shows("detected: forged events", after=typed)
    typed = demo.type("cut nobody")
    demo.shows("cut needs a domain:", after=typed)
    typed = demo.type("fame beta")
    demo.shows("make demo ARGS=self", after=typed)
    begun = time.monotonic()
    assert demo.end(signal.SIGINT) == 0
    assert time.monotonic() - begun < STOPPED_WITHIN_S
    assert not alive(processes)
    assert "Traceback" not in demo.output


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.processes
@pytest.mark.timeout(900)
def test_twelve_domains_that_nobody_wires_link_carry_events_and_go_on_without_three(tmp_path: Path) -> None:
    demo = Demo(tmp_path, "twelve")
    try:
        demo.shows("know all others", 4 * STARTED_WITHIN_S)
        demo.shows("the domains made all others by themselves:", STARTED_WITHIN_S)
        demo.shows("has reached the readers at all 11 others", STARTED_WITHIN_S)
        demo.shows("/login/once/", STARTED_WITHIN_S)
        demo.shows("are killed at once", STARTED_WITHIN_S)
        demo.shows("has reached the readers at all 8 others", STARTED_WITHIN_S)
        demo.shows("It is your turn")
        typed = demo.type("send nobody")
        demo.shows("send needs a domain:", after=typed)
        typed = demo.type("map")
        demo.shows("alpha    down", after=typed)
        assert demo.end(signal.SIGINT) == 0
        assert "Traceback" not in demo.output
    finally:
        demo.kill()


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.processes
@pytest.mark.timeout(900)
def test_five_domains_hand_over_a_home_that_drains_and_one_that_is_lost(demo: Demo) -> None:
    demo.shows("lacks", STARTED_WITHIN_S)
    typed = demo.type("lose beta")
    demo.shows("the home of", after=typed)
    demo.shows("is alpha: lose alpha", after=typed)
    typed = demo.type("drain alpha")
    demo.shows("Done, 1 homes were handed over", 120, after=typed)
    demo.shows("of term 1; alpha is a replica, and may stop", 60, after=typed)
    home = demo.output[typed:].partition("the home of ")[2].partition(" is ")[2].partition(",")[0]
    assert home in ("beta", "gamma", "epsilon"), "a neighbour of alpha"
    typed = demo.type("undrain alpha")
    demo.shows("alpha takes over homes again", after=typed)
    typed = demo.type(f"lose {home}")
    demo.shows("names electors", after=typed)
    demo.shows("by the signatures of a majority of 2", 120, after=typed)
    demo.shows("comes back as a replica", 60, after=typed)
    assert demo.end(signal.SIGINT) == 0
    assert "Traceback" not in demo.output


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.processes
@pytest.mark.timeout(1200)
def test_five_domains_administrate_themselves_when_one_is_famous_drained_and_lost(tmp_path: Path) -> None:
    demo = Demo(tmp_path, "self")
    try:
        demo.shows("It is your turn", 4 * STARTED_WITHIN_S)
        assert "/login/once/" in demo.output
        typed = demo.type("fame nobody")
        demo.shows("fame needs a domain:", after=typed)
        typed = demo.type("fame beta")
        demo.shows("decision 1 of beta: a replica at", 120, after=typed)
        demo.shows("no domain has more than 1.25 times its fair share", 300, after=typed)
        demo.shows("; 0 events missing, 0 doubled. The crowd has left.", 180, after=typed)
        demo.shows("Look: herald plan show", 60, after=typed)
        typed = demo.type("drain alpha")
        demo.shows("20 readers read", 60, after=typed)
        demo.shows("left to hand over: 0 homes, 0 deliveries, 0 readers", 120, after=typed)
        demo.shows("0 events missing, 0 doubled", 60, after=typed)
        demo.shows("alpha is a replica, and may stop", 60, after=typed)
        typed = demo.type("home")
        demo.shows("epsilon  home ", after=typed)
        home = demo.output[typed:].rpartition("home ")[2].partition(",")[0]
        assert home in ("beta", "gamma", "delta", "epsilon")
        typed = demo.type(f"lose {home}")
        demo.shows("by the signatures of a majority of 3", 120, after=typed)
        demo.shows("10 of 10 events of before", 60, after=typed)
        typed = demo.type(f"start {home}")
        demo.shows("is up again", STARTED_WITHIN_S, after=typed)
        demo.shows("epsilon  home ", 180, after=typed)
        assert f"home {home}, " not in demo.output[typed:], "it comes back as a replica"
        assert demo.end(signal.SIGINT) == 0
        assert "Traceback" not in demo.output
    finally:
        demo.kill()


def snapshot(*domains: DomainView) -> Snapshot:
    return Snapshot(1.0, domains)


def test_the_view_shows_what_each_domain_holds_of_each_and_what_it_lacks() -> None:
    ahead = DomainView("alpha", True, {"alpha": 5, "beta": 2}, (LinkSnapshot("beta", "active", "eager", backlog=3),))
    behind = DomainView("beta", True, {"alpha": 2, "beta": 2}, (LinkSnapshot("alpha", "active", "lazy", cut=True),))
    _, head, first, second, *_ = table(snapshot(ahead, behind))
    assert head.split() == ["domain", "alpha", "beta", "lacks", "links"]
    assert first.split() == ["alpha", "5", "2", "0", "beta", "eager", "backlog", "3;"]
    assert second.split() == ["beta", "2<", "2", "3", "alpha", "CUT", "lazy;"]
    assert "down" in table(snapshot(DomainView("alpha", up=False)))[2]


def test_news_are_what_differs_between_two_moments() -> None:
    forged = Detected("forged", "beta", "gamma")
    before = DomainView("alpha", True, links=(LinkSnapshot("beta", "active"),), detected={forged: 1})
    after = DomainView(
        "alpha",
        True,
        links=(LinkSnapshot("beta", "active", trouble="unreachable"),),
        detected={forged: 3},
        quarantined=frozenset({"beta"}),
    )
    assert news(snapshot(before), snapshot(before)) == []
    assert news(snapshot(before), snapshot(after)) == [
        "alpha cannot reach beta: unreachable.",
        "alpha detected: forged events of gamma, sent by beta (x3).",
        "alpha quarantined beta.",
    ]
    assert news(snapshot(after), snapshot(DomainView("alpha", up=False))) == ["alpha is down."]
