"""`python -m spark JOB --input DIR --output DIR`: one report, or all of them; compaction; generated records."""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spark import periods, problems, reading
from spark.jobs.running import Build, JobRequest, JobRunner, check_input
from spark.locations import Location
from spark.progress import ProgressReporter
from spark.session import SMALL_BYTES, Engine, session
from spark.staging import staging

REPORTS = ("access", "load", "placement", "overlap", "federation")
JOBS = (*REPORTS, "all", "compaction", "generate")
FAILED = 1
"""Exit status of a failed job; 2 is a wrong command line."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status. Errors are one sentence on standard error."""
    chosen = _parser().parse_args(arguments)
    told_to_end: list[int] = []

    def end(number: int, _: object) -> None:
        told_to_end.append(number)
        sys.exit(128 + number)  # so that the run removes its files

    signal.signal(signal.SIGTERM, end)
    logging.getLogger().addHandler(logging.NullHandler())  # py4j also logs the errors that it raises, with their stack
    progress = ProgressReporter(chosen.progress)
    try:
        return _run(chosen, progress)
    except (KeyboardInterrupt, SystemExit):
        progress.close()
        return _ended(told_to_end[0] if told_to_end else signal.SIGINT)
    except Exception as error:  # the outermost place: every error becomes one sentence
        progress.close()
        if told_to_end:  # Spark may have failed because it was stopped in the middle of a call
            return _ended(told_to_end[0])
        if os.environ.get("SPARK_JOB_TRACE"):
            raise
        print(problems.sentence(error, chosen.output), file=sys.stderr)
        return FAILED
    finally:
        progress.close()


def _ended(number: int) -> int:
    """Print which signal ended the job, as nothing else would; return the exit status."""
    print(f"The job was ended by {signal.Signals(number).name}; earlier output is still in place.", file=sys.stderr)
    return 128 + number


def _run(chosen: argparse.Namespace, progress: ProgressReporter) -> int:
    output = Location(chosen.output)
    if chosen.job == "generate":
        _generate(chosen, output, progress)
        return 0
    if chosen.input is None:
        raise problems.JobProblem("Give the folder of the access records: --input DIR.")
    request = JobRequest(
        Location(chosen.input),
        output,
        periods.period(chosen.begin, chosen.end, chosen.zone),
        chosen.domain,
        chosen.lookback_days,
        _limits(chosen.limits),
    )
    check_input(request.input)
    if chosen.job == "compaction":
        from spark.jobs import compaction

        _say(compaction.run(request, progress), progress)
        return 0
    size = sum(entry.size for _, entry in reading.listing(request.input, request.period))
    engine = Engine(chosen.master, chosen.memory, chosen.work, size < SMALL_BYTES)
    names = REPORTS if chosen.job == "all" else (chosen.job,)
    progress.say(chosen.job, "start Spark", 0, 0)
    with (
        staging((request.input, output), chosen.master, chosen.work) as copies,
        session(engine, f"herald-{chosen.job}") as spark,
    ):
        request.staging = copies
        runner = JobRunner(spark, request, progress)
        for name in names:
            _say(runner.run(name, _build(name)), progress)
    return 0


def _build(name: str) -> Build:
    from importlib import import_module

    build: Build = import_module(f"spark.jobs.{name}").build
    return build


def _generate(chosen: argparse.Namespace, output: Location, progress: ProgressReporter) -> None:
    from spark.jobs import generate

    begin = periods.period(chosen.begin or "2026-01-01", None, chosen.zone).begin
    plan = generate.GenerationPlan(
        chosen.records,
        chosen.days,
        chosen.rps,
        chosen.principals,
        chosen.seed,
        begin.replace(minute=0, second=0, microsecond=0),
        chosen.domain,
    )
    answer = generate.run(plan, output, progress)
    progress.close()
    print(
        f"{answer['records']:,} records in {output.address}; the expected numbers of reports are in {generate.ANSWER}."
    )


def _say(report: dict[str, Any], progress: ProgressReporter) -> None:
    """Print a report's numbers for people; programs read report.json."""
    progress.close()
    given = report["input"]
    skipped = f", {given['skipped_segments']} skipped" if given["skipped_segments"] else ""
    print(
        f"{report['report']}: {given['records']:,} records in {given['segments']:,} segments{skipped}, "
        f"{report['took_s']} s"
    )
    for name, number in report["headline"].items():
        value = number["value"]
        text = f"{value:,.1f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
        print(f"  {name.replace('_', ' '):22} {text} {number['unit'] if value is not None else ''}".rstrip())
    for one in given["skipped"]:
        print(f"  skipped {one['segment']}: {one['reason']}", file=sys.stderr)


def _limits(path: str | None) -> dict[str, float]:
    if path is None:
        return {}
    try:
        found = json.loads(Path(path).read_text())
        if isinstance(found, dict) and all(isinstance(value, int | float) for value in found.values()):
            return {str(name): float(value) for name, value in found.items()}
    except (OSError, ValueError):
        pass
    raise problems.JobProblem(
        f'--limits: {path} must be a JSON object of numbers, as in {{"rp-publish-events": 1000}}.'
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m spark", description="Reports over access records (docs/reports.md)."
    )
    parser.add_argument("job", choices=JOBS, metavar="JOB", help=f"one of {', '.join(JOBS)}")
    parser.add_argument(
        "--input", metavar="DIR", help="the folder of the access records, or an address such as s3a://bucket/records"
    )
    parser.add_argument(
        "--output", metavar="DIR", required=True, help="the folder of the reports (of the records, for generate)"
    )
    parser.add_argument(
        "--from",
        dest="begin",
        metavar="TIME",
        help="begin: 2027-01-15 or 2027-01-15T08:00Z; default: the beginning of the records",
    )
    parser.add_argument("--to", dest="end", metavar="TIME", help="end, exclusive")
    parser.add_argument("--zone", default="UTC", help="time zone of days, and of times without an offset (UTC)")
    parser.add_argument(
        "--domain", default=os.environ.get("HERALD_DOMAIN", "localhost"), help="this domain's name (HERALD_DOMAIN)"
    )
    parser.add_argument(
        "--lookback-days",
        type=_count(0, 400),
        default=30,
        help="days before --from to compare with, for new and dormant principals (30)",
    )
    parser.add_argument("--limits", metavar="FILE", help="JSON object of limits, for the forecast of the load report")
    parser.add_argument(
        "--master",
        default=os.environ.get("HERALD_SPARK_MASTER", "local[*]"),
        help="Spark master (HERALD_SPARK_MASTER, local[*])",
    )
    parser.add_argument("--memory", default="1g", help="Java memory of the driver and of each executor (1g)")
    parser.add_argument("--work", metavar="DIR", help="folder where Spark spills (the system's temporary one)")
    parser.add_argument(
        "--progress",
        choices=("text", "json", "none"),
        default="text",
        help="progress on standard error; json: an object per line",
    )
    made = parser.add_argument_group("generate")
    made.add_argument(
        "--records", type=_count(1, 10**10), default=1_000_000, metavar="N", help="number of records (1,000,000)"
    )
    made.add_argument("--days", type=_count(1, 3660), default=1, metavar="D", help="days from --from (1)")
    made.add_argument(
        "--rps", type=_count(1, 10**6), default=1_000, metavar="R", help="number of rendezvous points (1,000)"
    )
    made.add_argument("--principals", type=_count(1, 10**6), default=10_000, metavar="P", help="principals (10,000)")
    made.add_argument(
        "--seed", type=_count(0, 10**9), default=1, metavar="S", help="the same seed makes the same records (1)"
    )
    return parser


def _count(low: int, high: int) -> Any:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9_]{1,15}", text) or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"a number from {low} to {high:,}, not {text!r}")
        return int(text)

    return parse


if __name__ == "__main__":
    sys.exit(main())
