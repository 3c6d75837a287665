"""Faults by seed: python -m tests.faults --seeds 20 --seconds 60, or python -m tests.faults check HISTORY (docs/faults.md)."""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from pathlib import Path

from demo.harness.servers import ROOT
from tests.faults.checker import Report, check
from tests.faults.history import read
from tests.faults.run import Settings, domain_of, run
from tests.gateway.server import prepare

SHOWN_MAX = 20


def main(arguments: list[str] | None = None) -> int:
    """Run seeds, or check a history again; return 1 if there are violations."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("check", nargs="?", choices=["check"], help="check a history that was kept")
    parser.add_argument("history", nargs="?", type=Path, help="its file")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds to run (1)")
    parser.add_argument("--first", type=int, default=1, help="the first of them (1)")
    parser.add_argument("--seconds", type=float, default=60.0, help="seconds of load and faults of each (60)")
    parser.add_argument("--level", default="replicated:all", help="acknowledgement level (replicated:all)")
    parser.add_argument("--replicas", type=int, default=1, help="replicas of each of three primaries (1)")
    parser.add_argument("--gateways", type=int, default=2, help="gateways (2)")
    parser.add_argument("--rate", type=float, default=60.0, help="events a second, about (60)")
    parser.add_argument("--no-cuts", action="store_true", help="servers without proxies, which cost CPU")
    parser.add_argument("--older", help="commit of which one gateway is")
    parser.add_argument("--one-redis", action="store_true", help="one Redis instead of a cluster; with --level stored")
    parser.add_argument("--faults", default="", help="faults that may happen, separated by commas (all)")
    parser.add_argument(
        "--keep", type=Path, default=Path("faults"), help="folder for what violating runs leave (faults)"
    )
    parser.add_argument("--keep-all", action="store_true", help="keep what every run leaves")
    asked = parser.parse_args(arguments)
    if asked.check:
        report = check(read(asked.history))
        show(report)
        return bool(report.violations)
    faults = [name for name in asked.faults.split(",") if name]
    seeds = range(asked.first, asked.first + asked.seeds)
    with tempfile.TemporaryDirectory(prefix="herald-faults-") as made:
        older = source_tree(asked.older, Path(made)) if asked.older else None
        settings = Settings(
            level=asked.level,
            seconds=asked.seconds,
            replicas=asked.replicas,
            gateways=asked.gateways,
            faults=faults,
            rate=asked.rate,
            cuts=not asked.no_cuts,
            older=older,
            clustered=not asked.one_redis,
        )
        return _run_seeds(seeds, settings, Path(made), asked.keep, asked.keep_all)


def source_tree(commit: str, folder: Path) -> Path:
    """The source tree of a commit, in a folder of `folder`."""
    found = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # absent before 3.11.4
        archive.extractall(folder / "older")
    return folder / "older"


def _run_seeds(seeds: range, settings: Settings, made: Path, keep: Path, keep_all: bool) -> int:
    """Run seeds on one domain after the other: another one after a run with violations, so that what it left is whole."""
    violating = []
    prepared = prepare(made / "prepared" / "var")
    left, total = list(seeds), Counter[str]()
    while left:
        folder = made / f"from-{left[0]}"
        with domain_of(folder, prepared, settings) as domain:
            while left:
                seed, began = left.pop(0), time.monotonic()
                path = folder / f"seed{seed}.jsonl"
                kept = keep / f"{settings.level.replace(':', '-')}-seed{seed}"
                try:
                    run(domain, path, seed, settings)
                except BaseException:
                    _keep(folder, kept)
                    raise
                report = check(read(path))
                report.notes["tracebacks of gateways so far"] = domain.gateways.log.count("Traceback")
                print(f"seed {seed}: {_summary(report)}, {time.monotonic() - began:.0f} s", flush=True)
                show(report)
                if report.violations or keep_all:
                    _keep(folder, kept)
                total += report.counts
                if report.violations:
                    violating.append(seed)
                    break
        shutil.rmtree(folder)
    which = f" {violating}" if violating else ""
    print(f"{len(seeds)} seeds of {settings.seconds:g} s at {settings.level}: {len(violating)} with violations{which}")
    print(f"{_counted(total)} in all")
    if not total["acknowledged events"]:
        print("Nothing was acknowledged, so nothing was checked.")
        return 1
    return bool(violating)


def _keep(folder: Path, kept: Path) -> None:
    """Copy what a run left, without the data of its servers."""
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(folder, kept, ignore=shutil.ignore_patterns("*.sock", "appendonlydir"))
    print(f"kept in {kept}", flush=True)


def _summary(report: Report) -> str:
    found = len(report.violations)
    return f"{found} violations in {_counted(report.counts)} ({_counted(report.notes)})"


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))


def show(report: Report) -> None:
    """Print violations, the first ones of many."""
    for one in report.violations[:SHOWN_MAX]:
        print(f"  {one.name} at {one.at:.2f} s, RP {one.rp}: {one.detail}", flush=True)
    if len(report.violations) > SHOWN_MAX:
        print(f"  and {len(report.violations) - SHOWN_MAX} more")


if __name__ == "__main__":
    sys.exit(main())
