"""README's five minutes and the tutorial of the durable worker, word for word: terminals are shells, and each command is the page's."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from demo.harness.servers import ROOT, Domain, wait_for
from tests.examples.running import Program, environment, tool
from tests.examples.shell import ran

pytestmark = [pytest.mark.processes, pytest.mark.long]
README = (ROOT / "README.md").read_text().partition("## Five minutes")[2].partition("\n## ")[0]
WORKER = (ROOT / "docs" / "tutorials" / "durable-worker.md").read_text()


def commands(text: str, beginning: str) -> list[str]:
    """The indented commands between the heading or step that begins so and the next one."""
    found = re.search(rf"^{re.escape(beginning)}.*?(?=^## |^\*\*\d|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, beginning
    return [line.strip() for line in found[0].splitlines() if line.startswith("    ")]


class Terminals:
    """Shells in one folder on the domain's machine, with what the page has put into their environment."""

    def __init__(self, site: Domain, folder: Path) -> None:
        self._site, self._folder = site, folder
        (folder / "var").mkdir()
        (folder / ".venv").symlink_to(Path(sys.executable).parent.parent)
        self._env = environment(site, HERALD_DATA_DIR=str(site.data_dir), HERALD_PORT=str(site.port))
        del self._env["HERALD_TOKEN"], self._env["HERALD_URL"]

    def _here(self, lines: list[str]) -> str:
        return "\n".join(lines).replace("127.0.0.1:8000", f"127.0.0.1:{self._site.port}")

    def run(self, *lines: str) -> str:
        return ran(self._here([*lines]), self._site, self._folder, env=self._env)

    def leave_running(self, *lines: str) -> Program:
        """The last command goes on until it is stopped as by Ctrl-C."""
        script = self._here([*lines[:-1], f"exec {lines[-1]}"])
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
    missed, again = commands(README, "**5. Miss nothing.**")
    terminals.run(*prepare, missed)
    with terminals.leave_running(*prepare, again) as second:
        second.wait_for("Nobody is listening.", 3)
        assert not any("It rains." in line for line in second.lines), "what was read is not read again"
    monitor, load = (commands(README, "**6. Real input.**")[number] for number in (0, 1))
    with terminals.leave_running(*prepare, monitor):
        wait_for(
            lambda: "hosts/me/cpu" in terminals.run(*prepare, "herald rp list"), about="the monitor has made its RPs"
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
    terminals.run(token, third)
    with terminals.leave_running(token, variable, work) as worker:
        worker.wait_for("processing {'order': 3}")
        assert not any("'order': 1" in line for line in worker.lines)
        listing = commands(WORKER, "## 4.")
        wait_for(lambda: re.search(r"/orders/ +\S+ +0 ", terminals.run(token, *listing)), about="its lag is 0")
