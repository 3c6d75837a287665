"""README's five minutes and the tutorials, word for word: terminals are shells, and each command is the page's."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from demo.harness.servers import ROOT, Domain, wait_for
from tests.examples.running import Program, environment, tool
from tests.examples.shell import ran
from tests.gateway.server import Prepared

pytestmark = [pytest.mark.processes, pytest.mark.long]
README = (ROOT / "README.md").read_text().partition("## Five minutes")[2].partition("\n## ")[0]
TUTORIALS = ROOT / "docs" / "tutorials"
WORKER = (TUTORIALS / "durable-worker.md").read_text()
TWO_DOMAINS = (TUTORIALS / "two-domains.md").read_text()
FLIGHTS = (TUTORIALS / "flights.md").read_text()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[Domain]:
    """A running domain for the tutorials alone: the pages name its rendezvous points."""
    with Domain(tmp_path_factory.mktemp("tutorials") / "var", seed=prepared.migrated, records=0) as domain:
        yield domain


def commands(text: str, beginning: str) -> list[str]:
    """The indented commands between the heading or step that begins so and the next one."""
    found = re.search(rf"^{re.escape(beginning)}.*?(?=^## |^\*\*\d|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, beginning
    return [line.strip() for line in found[0].splitlines() if line.startswith("    ")]


class Terminals:
    """Shells in one folder on the domain's machine, with what the page has put into their environment: what an export takes from a command
    is kept, as a terminal does.
    """

    def __init__(self, site: Domain, folder: Path) -> None:
        self._site, self._folder = site, folder
        (folder / "var").mkdir(exist_ok=True)
        (folder / ".venv").symlink_to(Path(sys.executable).parent.parent)
        self._env = environment(site, HERALD_DATA_DIR=str(site.data_dir), HERALD_PORT=str(site.port))
        del self._env["HERALD_TOKEN"], self._env["HERALD_URL"]
        self._ports = {8000: site.port}
        self._exported: dict[str, str] = {}  # values, by all lines until then

    def at(self, ports: dict[int, int]) -> None:
        """The ports of the page, and those that are free here."""
        self._ports = ports

    def _here(self, lines: list[str]) -> str:
        text = "\n".join(lines)
        for written, port in self._ports.items():
            text = re.sub(rf"(?<=127\.0\.0\.1:){written}\b|(?<=HERALD_PORT=){written}\b", str(port), text)
        return text.replace("HERALD_DATA_DIR=var/", f"HERALD_DATA_DIR={self._folder}/var/")  # this folder has no source

    def _kept(self, lines: Sequence[str]) -> list[str]:
        kept: list[str] = []
        for line in lines:
            if stated := re.fullmatch(r"export (\w+)=\$\(.*\)", line):
                script = self._here([*kept, line, f'printf %s "${stated[1]}"'])
                if script not in self._exported:
                    self._exported[script] = ran(script, self._site, self._folder, env=self._env)
                kept.append(f"export {stated[1]}={shlex.quote(self._exported[script])}")
            else:
                kept.append(line)
        return kept

    def run(self, *lines: str, typed: str | None = None) -> str:
        return ran(self._here(self._kept(lines)), self._site, self._folder, env=self._env, typed=typed)

    def leave_running(self, *lines: str) -> Program:
        """The last command goes on until it is stopped as by Ctrl-C."""
        *before, last = self._kept(lines)
        script = self._here([*before, f"exec {last}"])
        return Program(tool("bash"), "-euc", script, env=self._env, cwd=self._folder)


def test_the_five_minutes_of_the_readme(site: Domain, tmp_path: Path) -> None:
    tool("curl")
    terminals = Terminals(site, tmp_path)
    *prepare, create, watch = commands(README, "**2. Watch.**")
    publish = commands(README, "**3. Publish.**")
    terminals.run(*prepare, create)
    with terminals.leave_running(*prepare, watch) as second:
        terminals.run(*publish)
        second.wait_for("It rains.")
        assert any('{"celsius":21.5}' in line for line in second.lines), second.told
        state = tmp_path / "var" / "weather.state"
        wait_for(lambda: state.exists() and re.search(r":2\b", state.read_text()), about="the place is kept")
    missed, again = commands(README, "**5. Miss nothing.**")
    terminals.run(*prepare, missed)
    with terminals.leave_running(*prepare, again) as second:
        second.wait_for("Nobody is listening.", 3)
        assert not any("It rains." in line for line in second.lines), "what was read is not read again"
    monitor, load = (commands(README, "**6. Real input.**")[number] for number in (0, 1))
    with terminals.leave_running(*prepare, monitor):
        wait_for(
            lambda: "hosts/me/cpu" in terminals.run(*prepare, "herald rp list"),
            every_s=1,
            about="the monitor has made its RPs",
        )
        with terminals.leave_running(*prepare, load) as second:
            second.wait_for("hosts/me/cpu")
    assert "herald sub-durable attach sub_" in terminals.run(*prepare, *commands(README, "**7. A subscription"))
    snow, pull, follow = commands(README, "**8. Without our tools.**")
    assert '"celsius":21.5' in terminals.run(*prepare, snow, pull).replace(": ", ":")
    with terminals.leave_running(*prepare, follow) as second:
        second.wait_for("It snows.")


def test_the_tutorial_of_the_durable_worker(site: Domain, tmp_path: Path) -> None:
    terminals = Terminals(site, tmp_path)
    token = "export HERALD_TOKEN=$(.venv/bin/herald token create --admin)"
    create, subscribe, variable = commands(WORKER, "## 1.")
    found = re.search(r"sub_\w+", terminals.run(token, create, subscribe))
    assert found is not None
    variable = variable.replace("sub_...", found[0])
    code = re.search(r"^```python\n(.*?)^```$", WORKER, re.MULTILINE | re.DOTALL)
    assert code is not None
    (tmp_path / "var" / "worker.py").write_text(code[1].replace("127.0.0.1:8000", f"127.0.0.1:{site.port}"))
    work, first, second, third = commands(WORKER, "## 3.")
    with terminals.leave_running(token, variable, work) as worker:
        terminals.run(token, first, second)
        worker.wait_for("processing {'order': 2}")
        assert next(line for line in worker.lines if "processing" in line) == "processing {'order': 1}"
        listing = commands(WORKER, "## 4.")
        done = re.compile(r"/orders/ +\S+ +0 ")
        wait_for(lambda: done.search(terminals.run(token, *listing)), every_s=1, about="both are acknowledged")
    terminals.run(token, third)
    with terminals.leave_running(token, variable, work) as worker:
        worker.wait_for("processing {'order': 3}")
        assert not any("'order': 1" in line for line in worker.lines)
        wait_for(lambda: done.search(terminals.run(token, *listing)), every_s=1, about="its lag is 0")


@pytest.mark.timeout(600)
def test_the_tutorial_of_two_domains(tmp_path: Path, prepared: Prepared) -> None:
    with ExitStack() as running:
        started = {}
        for command in commands(TWO_DOMAINS, "## 1.")[:2]:
            stated = re.fullmatch(r"HERALD_DOMAIN=(\S+) HERALD_PORT=(\d+) HERALD_DATA_DIR=(\S+) make run", command)
            assert stated is not None, command
            name, port, folder = stated.groups()
            started[int(port)] = running.enter_context(Domain(tmp_path / folder, seed=prepared.migrated, domain=name))
        a, _ = started.values()
        terminals = Terminals(a, tmp_path)
        terminals.at({port: domain.port for port, domain in started.items()})
        exports = commands(TWO_DOMAINS, "## 1.")[2:]
        at_a, at_b = exports[:2], exports[2:]

        add, approve = commands(TWO_DOMAINS, "## 2.")
        terminals.run(*at_a, add, typed="y\n")
        terminals.run(*at_b, approve, typed="y\n")
        for prepare, other in ((at_a, "b.example"), (at_b, "a.example")):
            listed = re.compile(rf"^{other}\s+active\b", re.MULTILINE)
            wait_for(
                lambda prepare=prepare, listed=listed: listed.search(terminals.run(*prepare, "herald peer list")),  # type: ignore[misc]
                every_s=1,
                about=f"{other} is active",
            )
        terminals.run(*at_a, *commands(TWO_DOMAINS, "## 3."))

        publish_a, publish_b, read_b, holders = commands(TWO_DOMAINS, "## 4.")
        terminals.run(*at_a, publish_a)
        terminals.run(*at_b, publish_b)
        with terminals.leave_running(*at_b, read_b) as reader:
            reader.wait_for("Published at a.")
            reader.wait_for("Published at b.")
            shown = terminals.run(*at_b, holders)
            assert "a.example" in shown, shown
            assert "b.example" in shown, shown

            publish_meanwhile, read_a = commands(TWO_DOMAINS, "## 5.")
            a.stop()
            terminals.run(*at_b, publish_meanwhile)
            reader.wait_for("Published while a is stopped.")
            a.start()
        with terminals.leave_running(*at_a, read_a) as reader:
            reader.wait_for("Published while a is stopped.")
        assert terminals.run(*at_a, *commands(TWO_DOMAINS, "## 6.")).startswith("Proved: a.example published ")


def test_the_tutorial_of_the_flights(site: Domain, tmp_path: Path) -> None:
    terminals = Terminals(site, tmp_path)
    token = ['export PATH="$PWD/.venv/bin:$PATH"', "export HERALD_TOKEN=$(.venv/bin/herald token create --admin)"]
    install, replay, watch = commands(FLIGHTS, "# Tutorial")
    terminals.run(install)
    with terminals.leave_running(*token, replay) as first:
        wait_for(lambda: "flights/LGA" in terminals.run(*token, "herald rp list"), 180, every_s=1, about=first.told)
        with terminals.leave_running(*token, watch) as second:
            for airport in ("EWR", "JFK", "LGA"):
                second.wait_for(f"flights/{airport}")
    document = FLIGHTS.partition("**")[0]
    assert "--speed max" in document
    assert "--max-events" in document
    assert "--max-events" in terminals.run("herald replay --help")
