"""`python -m bench`: every scenario against every server, one after the other, then tables, a plot and the targets."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

from bench import report
from bench.load import LoadError, compile_load
from bench.measure import Bench, BenchMeasurement, Options
from bench.peers import SERVERS
from bench.processes import LOAD_CORE, SERVER_CORE, CannotStart, raise_file_limit
from bench.scenarios import APART, LONG, SCENARIOS
from bench.targets import checks

WORK = Path(__file__).with_name("work")
RESULTS = Path(__file__).with_name("results")
_USUAL = [scenario for scenario in SCENARIOS if scenario not in LONG]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns 0 if Herald was measured and met every measured target."""
    chosen = _parse(arguments)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that servers are stopped then, too
    options = Options(
        rates=chosen.rates,
        seconds=chosen.seconds,
        sessions=chosen.sessions,
        idle_sessions=chosen.idle_sessions,
        rps=chosen.rps,
        many_rates=chosen.many_rates,
    )
    _say_where()
    try:
        program = compile_load(WORK)
    except LoadError as error:
        print(error, file=sys.stderr)
        return 2
    servers, skipped = [], []
    for name in chosen.servers:
        reason = SERVERS[name].missing()
        if reason:
            skipped.append(f"{SERVERS[name].label}: {reason}")
            print(f"Skipped {skipped[-1]}.")
        else:
            servers.append(name)
    started = time.monotonic()
    measurements: list[BenchMeasurement] = []
    for scenario in chosen.only:
        print(f"\n{report.TITLES[scenario]}", flush=True)
        for name in servers:
            measurements += _measure(scenario, name, Bench(program, WORK, options), skipped)
        if any(m.scenario == scenario for m in measurements):
            report.print_table(report.rows(scenario, measurements))
    if not measurements:
        print("Nothing was measured.", file=sys.stderr)
        return 2
    found = checks(measurements)
    if found:
        print("\nTargets")
        report.print_table(report.check_rows(found))
    # The results in the repository are always of a complete run.
    apart = chosen.only[0] if len(chosen.only) == 1 and chosen.only[0] in APART else ""
    complete = options == Options() and (apart or (chosen.only == _USUAL and chosen.servers == list(SERVERS)))
    folder = RESULTS if complete else WORK
    written = report.write(
        folder, measurements, options, time.monotonic() - started, skipped, name=apart or report.LATEST
    )
    print("\nWritten: " + ", ".join(os.path.relpath(path) for path in written))
    return 0 if found and all(check.passed for check in found) else 1


def _measure(scenario: str, name: str, bench: Bench, skipped: list[str]) -> list[BenchMeasurement]:
    """Return the rows of one scenario and server. A server that fails is reported and does not stop the others."""
    found: list[BenchMeasurement] = []
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=WORK))
    began = time.monotonic()
    try:
        server = SERVERS[name](folder)
        with nullcontext() if scenario in LONG else server:
            for measurement in SCENARIOS[scenario](bench, server):
                found.append(measurement)
                _progress(f"  ... {measurement.server} {measurement.case}")
    except (CannotStart, LoadError) as error:
        skipped.append(f"{SERVERS[name].label}, {scenario}: {error}")
        print(f"  {SERVERS[name].label} failed after {time.monotonic() - began:.0f} s: {error}", file=sys.stderr)
    finally:
        _progress("")
        shutil.rmtree(folder, ignore_errors=True)
    return found


def _progress(text: str) -> None:
    if sys.stdout.isatty():
        print(text.ljust(70), end="\r", flush=True)


def _say_where() -> None:
    cores = os.sched_getaffinity(0)
    if not {SERVER_CORE, LOAD_CORE} <= cores:
        print("This machine has only one core: server and load generator share it, and the numbers mean little.")
    else:
        print(
            f"Servers on core {SERVER_CORE}, load generator on core {LOAD_CORE}; up to {raise_file_limit():,} open "
            "files."
        )


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    default = Options()
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Herald side by side with its peers.")
    parser.add_argument(
        "--only",
        type=_names(SCENARIOS),
        default=_USUAL,
        help=f"scenarios: {','.join(SCENARIOS)}; default: all but {','.join(LONG)}",
    )
    parser.add_argument("--servers", type=_names(SERVERS), default=list(SERVERS), help=f"servers: {','.join(SERVERS)}")
    parser.add_argument("--rates", type=_rates, default=default.rates, help="events/s of the fan-out, as in 60,300")
    parser.add_argument(
        "--seconds", type=float, default=default.seconds, help="length of each measurement (%(default)g)"
    )
    parser.add_argument("--sessions", type=int, default=default.sessions, help="sessions of the fan-out (%(default)d)")
    parser.add_argument("--idle-sessions", type=int, default=default.idle_sessions, help="(%(default)d)")
    parser.add_argument("--rps", type=int, default=default.rps, help="rendezvous points of many-rps (%(default)d)")
    parser.add_argument(
        "--many-rates", type=_rates, default=default.many_rates, help="events/s of many-rps, as in 1000,4000"
    )
    return parser.parse_args(arguments)


def _names(known: Mapping[str, object]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(known)}")
        return names

    return parse


def _rates(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(rate) for rate in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError("give numbers separated by commas, as in 20,60,150") from None


if __name__ == "__main__":
    sys.exit(main())
