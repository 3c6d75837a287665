"""python -m tests.gateway.fuzz --inputs 1000000 --seed 7        a gateway of its own, some minutes
python -m tests.gateway.fuzz --seed 7 --first 4711 --inputs 1    one input again

Prints progress, and at the end the number of inputs by kind and outcome. Exits with 1 on a finding, which is printed with the
seed and the input.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

from tests.gateway.fuzz.inputs import LEFT_OUT, Target
from tests.gateway.fuzz.running import Finding, Fuzzer, Report, kinds
from tests.gateway.server import LiveGateway, Prepared, prepare

PROGRESS_EVERY = 10_000
SHOWN_BYTES = 2000
SETTINGS: dict[str, Any] = {
    "requests_per_s": 0,
    "publish_events_per_s": 0,
    "publish_bytes_per_s": 0,
    "failed_tokens_per_s": 0,
    "accepts_per_s": 0,
    "wait_s_max": 1,
    "request_timeout_s": 5,
}
"""Rates would answer for the code that is to be reached."""


def target_of(live_gateway: LiveGateway) -> Target:
    """What the inputs of a gateway refer to."""
    description = live_gateway.admin.get("/api/v1/schema", headers={"accept": "application/json"}).json()
    operations = [
        (method.upper(), path)
        for path, methods in description["paths"].items()
        for method in methods
        if method in ("get", "post", "put", "patch", "delete") and not any(part in path for part in LEFT_OUT)
    ]
    schemas = description["components"]["schemas"].values()
    words = sorted({name for schema in schemas for name in schema.get("properties", {})})
    rp = live_gateway.create_rp(history={"max_events": 50}, lease_s=36_000)
    made = live_gateway.admin.post(
        f"/api/v1/rps/{rp}/subscriptions", json={"lease_s": 36_000, "deliver": {"mode": "pull"}}
    )
    assert made.status_code == 201, made.text
    day = 86_400
    administrator = live_gateway.token("root", admin=True, lease_s=day)
    tokens = (live_gateway.token(lease_s=day), administrator, administrator, administrator, "", "x.y.z")
    return Target(operations, words, tokens, rp, made.json()["id"])


def fuzz(
    live_gateway: LiveGateway,
    seed: int,
    inputs: int,
    first: int = 0,
    progress: Callable[[Report], None] = lambda _: None,
) -> Report:
    """Send `inputs` inputs of `seed` to a running gateway, from number `first` on."""
    return asyncio.run(Fuzzer(live_gateway, target_of(live_gateway), seed, progress).run(kinds(first, inputs)))


def _shown(report: Report) -> None:
    if report.inputs % PROGRESS_EVERY == 0:
        print(f"{report.inputs} inputs, {len(report.findings)} findings", flush=True)


def text_of(finding: Finding, seed: int) -> str:
    """A finding, and how to have it again."""
    count = finding.last - finding.first + 1
    again = f"python -m tests.gateway.fuzz --seed {seed} --first {finding.first} --inputs {count}"
    sent = f"\n  sent: {finding.sent[:SHOWN_BYTES]!r}" if finding.sent else ""
    return f"FINDING ({finding.kind}): {finding.what}\n  again: {again}{sent}"


def main() -> int:
    """Run; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.gateway.fuzz", description="Fuzz a gateway of its own from outside."
    )
    parser.add_argument("--inputs", type=int, default=50_000, help="how many")
    parser.add_argument("--seed", type=int, default=1, help="of all inputs")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="herald-fuzz-") as folder:
        prepared: Prepared = prepare(Path(folder) / "prepared")
        with LiveGateway(Path(folder) / "var", prepared, **SETTINGS) as live_gateway:
            report = fuzz(live_gateway, options.seed, options.inputs, options.first, _shown)
            cpu = live_gateway.gateway_process().cpu_times() if live_gateway.gateway_process().is_running() else None
    print(f"\n{report.inputs} inputs of seed {options.seed} in {report.seconds:.0f} s", end="")
    print(f", {cpu.user + cpu.system:.0f} CPU-seconds of the gateway" if cpu else "")
    for (kind, outcome), count in sorted(report.outcomes.items()):
        print(f"{count:9d}  {kind:10s} {outcome}")
    for finding in report.findings:
        print(text_of(finding, options.seed))
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
