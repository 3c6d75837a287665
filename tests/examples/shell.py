"""Commands of the documents in bash, and whether they print what the documents show."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from demo.harness.servers import Domain
from tests.examples.running import environment, tool

RUN_WITHIN_S = 180


def ran(
    script: str,
    site: Domain,
    tmp_path: Path,
    *,
    admin: bool = False,
    env: Mapping[str, str] | None = None,
    typed: str | None = None,
) -> str:
    """What bash prints for the commands, in one script that ends at the first failure.

    `admin`: with an administrator's token; `env`: instead of an integrator's environment; `typed`: answers to what is asked.
    """
    env = dict(environment(site) if env is None else env)
    env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
    if admin:
        # The domain's own machine, where `herald token create` makes tokens.
        env |= {"HERALD_TOKEN": site.token(subject="integrator", admin=True), "HERALD_DATA_DIR": str(site.data_dir)}
    done = subprocess.run(
        [tool("bash"), "-euo", "pipefail", "-c", script],
        env=env,
        cwd=tmp_path,
        input=typed,
        capture_output=True,
        text=True,
        timeout=RUN_WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def prints(told: str, shown: str) -> None:
    """Assert that the lines of a document are among what was printed, in their order; `…` in them stands for anything."""
    left = told.splitlines()
    for line in shown.splitlines():
        wanted = re.compile(".*".join(re.escape(part) for part in line.split("…")))
        found = next((number for number, one in enumerate(left) if wanted.fullmatch(one)), None)
        assert found is not None, f"{line!r} is not in {left}, of\n{told}"
        del left[: found + 1]
