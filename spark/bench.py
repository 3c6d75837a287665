"""`make bench-spark`: reports over generated records against DuckDB computing the same tables, in the same run.

Each measurement is a process of its own. Time is from its start to its end, Java's start included; memory is the
highest sum of resident memory of the process and its children, measured ten times a second; CPU is theirs as well.
DuckDB gets as much memory and as many threads, reads the same files, uses the same buckets for latencies and writes the
same tables. Totals of both are compared with each other and with the generator's answer: a number that differs fails
the run. Then the access and load reports of the last hour of a day of a small domain, as the schedule makes them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
EVERY_S = 0.1
JOBS = ("access", "load")
SPARK = (sys.executable, "-m", "spark")
RATIO_MAX = 5.0
"""Bound of Spark's time by DuckDB's, for the most records measured: with few, Spark's start dominates."""
GROWTH_MAX = 1.1
"""Bound of the time per record with the most records by that with the fewest: beyond it, time does not grow linearly.
"""
HOUR_RECORDS = 20_000
"""Records in an hour of a small domain: five a second."""
HOUR_MAX_S = 60.0
_BUCKET = """CASE WHEN latency_us <= 0 THEN -1 WHEN latency_us < 16 THEN latency_us
    ELSE (octave - 3) * 8 + (latency_us >> (octave - 3)) END"""
_OCTAVE = """CASE (greatest(latency_us, 8) >> guess) WHEN 1 THEN guess WHEN 0 THEN guess - 1 ELSE guess + 1 END"""
_SEEN = "min(first_seen) AS first_seen, max(last_seen) AS last_seen"
_COUNTS = f"""sum(operations) AS operations, sum(operations) FILTER (outcome = 'refused') AS refused,
    sum(operations) FILTER (outcome = 'failed') AS failed, sum(events) AS events, sum(bytes_in) AS bytes_in,
    sum(bytes_out) AS bytes_out, {_SEEN}"""
_HOURLY = """sum(count) AS operations, sum(count) FILTER (outcome = 'refused') AS refused,
    sum(count) FILTER (outcome = 'failed') AS failed, sum(events) AS events, sum(bytes_in) AS bytes_in,
    sum(bytes_out) AS bytes_out"""
_QUANTILES = """SELECT {keys}, min(bucket) FILTER (reached >= (everybody * 500 + 999) // 1000) AS p50,
        min(bucket) FILTER (reached >= (everybody * 950 + 999) // 1000) AS p95,
        min(bucket) FILTER (reached >= (everybody * 990 + 999) // 1000) AS p99
    FROM (SELECT *, sum(n) OVER (PARTITION BY {keys} ORDER BY bucket) AS reached, sum(n) OVER (PARTITION BY {keys}) AS everybody
        FROM (SELECT {keys}, bucket, sum(operations) AS n FROM {buckets} GROUP BY ALL)) GROUP BY ALL"""
_BUCKETS = f"""(SELECT *, {_BUCKET} AS bucket FROM (SELECT *, {_OCTAVE} AS octave
    FROM (SELECT *, floor(log2(greatest(latency_us, 8)))::INTEGER AS guess FROM records
        WHERE outcome = 'ok' AND latency_us > 0)))"""
_PUBLISHED = "operation = 'publish' AND outcome = 'ok'"
_DELIVERED = "operation IN ('deliver', 'history') AND outcome = 'ok'"
_TRAFFIC = f"""sum(count) AS operations, sum(count) FILTER ({_PUBLISHED}) AS publishes,
    sum(events) FILTER ({_PUBLISHED}) AS events_in, sum(bytes_in) FILTER ({_PUBLISHED}) AS bytes_in,
    sum(events) FILTER ({_DELIVERED}) AS deliveries, sum(bytes_out) FILTER ({_DELIVERED}) AS bytes_out,
    sum(events) FILTER (({_PUBLISHED}) OR ({_DELIVERED})) AS moved, sum(sessions) AS reading_minutes,
    max(sessions) AS readers_max, sum(count) FILTER (operation = 'subscribe' AND outcome = 'ok') AS joined,
    sum(count) FILTER (operation = 'unsubscribe' AND outcome = 'ok') AS "left",
    sum(count) FILTER (outcome = 'refused') AS refused, sum(count) FILTER (outcome = 'failed') AS failed,
    sum(latency_us * count) FILTER ({_PUBLISHED} AND latency_us > 0) AS spent_us,
    sum(count) FILTER ({_PUBLISHED} AND latency_us > 0) AS timed, max(latency_us) FILTER ({_PUBLISHED}) AS most_us"""
_SUMMED = (
    "operations publishes events_in bytes_in deliveries bytes_out moved reading_minutes joined left refused failed"
)
_ROLLED = ", ".join(["max(readers_max) AS readers_max", *(f'sum("{n}") AS "{n}"' for n in _SUMMED.split(" "))])
SQL = {
    "access": {
        "usage": """SELECT principal, issuer, peer, client, operation, rp, outcome, reason, sum(count) AS operations,
            sum(events) AS events, sum(bytes_in) AS bytes_in, sum(bytes_out) AS bytes_out, min(time) AS first_seen,
            max(time) AS last_seen FROM records GROUP BY ALL""",
        "activity": f"SELECT date_trunc('hour', time) AS hour, principal, issuer, peer, {_HOURLY} FROM records GROUP "
        "BY ALL",
        "hours": f"SELECT date_trunc('hour', time) AS hour, operation, {_HOURLY} FROM records GROUP BY ALL",
        "principals": f"SELECT principal, issuer, {_COUNTS}, count(DISTINCT rp) AS rps FROM usage GROUP BY ALL",
        "issuers": f"SELECT issuer, {_COUNTS}, count(DISTINCT principal) AS principals FROM usage GROUP BY ALL",
        "peers": f"SELECT peer, {_COUNTS} FROM usage GROUP BY ALL",
        "operations": f"SELECT operation, client, {_COUNTS} FROM usage GROUP BY ALL",
        "rps": f"SELECT rp, {_COUNTS}, count(DISTINCT principal) AS principals FROM usage GROUP BY ALL",
        "refusals": f"""SELECT outcome, reason, operation, principal, issuer, peer, sum(operations) AS operations, {_SEEN}
            FROM usage WHERE outcome <> 'ok' GROUP BY ALL""",
    },
    "load": {
        "rp_hours": f"SELECT rp, date_trunc('hour', time) AS hour, {_TRAFFIC} FROM records GROUP BY ALL",
        "rp_histogram": f"""SELECT rp, bucket, sum(count) AS operations FROM {_BUCKETS}
            WHERE operation = 'publish' AND rp <> '' GROUP BY ALL""",
        "hour_histogram": f"""SELECT date_trunc('hour', time) AS hour, operation, bucket, sum(count) AS operations
            FROM {_BUCKETS} GROUP BY ALL""",
        "rps": f"""SELECT * FROM (SELECT rp, {_ROLLED} FROM rp_hours WHERE rp <> '' GROUP BY ALL)
            LEFT JOIN ({_QUANTILES.format(keys="rp", buckets="rp_histogram")}) USING (rp)""",
        "hours": f"""SELECT * FROM (SELECT hour, {_ROLLED} FROM rp_hours GROUP BY ALL) LEFT JOIN
            ({_QUANTILES.format(keys="hour", buckets="(FROM hour_histogram WHERE operation = 'publish')")}) USING (hour)""",
        "histogram": "SELECT operation, bucket, sum(operations) AS operations FROM hour_histogram GROUP BY ALL",
    },
}
TOTALS = {
    "access": "SELECT sum(operations), sum(refused), sum(failed), sum(events), sum(bytes_in), sum(bytes_out) FROM "
    "operations",
    "load": "SELECT sum(publishes), sum(events_in), sum(deliveries), sum(bytes_in), sum(bytes_out) FROM rps",
}
NAMES = {
    "access": ("operations", "refused", "failed", "events", "bytes_in", "bytes_out"),
    "load": ("publishes", "events_in", "deliveries", "bytes_in", "bytes_out"),
}


@dataclass(frozen=True)
class Measured:
    """The measurement of one process."""

    records: int
    job: str
    engine: str
    wall_s: float
    cpu_s: float
    peak_mib: float


def duckdb(job: str, records: str, output: str, memory: str, threads: int) -> None:
    """Make a report's tables with DuckDB; in a process of its own."""
    import duckdb as duck

    Path(output).mkdir(parents=True, exist_ok=True)
    base = duck.connect(config={"memory_limit": memory, "threads": threads, "temp_directory": f"{output}/spill"})
    base.execute("SET TimeZone = 'UTC'")
    base.execute("SET preserve_insertion_order = false")
    base.execute(
        f"CREATE VIEW records AS SELECT * FROM read_parquet('{records}/date=*/hour=*/*.parquet', hive_partitioning = "
        "false)"
    )
    for name, query in SQL[job].items():
        base.execute(f"COPY ({query}) TO '{output}/{name}.parquet' (FORMAT parquet, COMPRESSION zstd)")
        base.execute(f"CREATE VIEW {name} AS SELECT * FROM '{output}/{name}.parquet'")
    totals = base.execute(TOTALS[job]).fetchone() or ()
    Path(output, "totals.json").write_text(
        json.dumps({n: int(v or 0) for n, v in zip(NAMES[job], totals, strict=True)})
    )


def measure(arguments: list[str]) -> tuple[float, float, float]:
    """Run a process; return its time, its and its children's CPU seconds, and their highest resident memory in MiB."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as said:  # not a pipe, which nothing would read before the end
        process = subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=said)
        peak, cpu = 0.0, dict[int, float]()
        while process.poll() is None:
            resident, used = _usage(process.pid)
            peak = max(peak, resident)
            cpu |= used
            time.sleep(EVERY_S)
        said.seek(0)
        error = said.read()
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} {_how(process.returncode)}: {error.strip() or 'no output'}")
    return time.monotonic() - began, sum(cpu.values()), peak


def _how(status: int) -> str:
    """Return how a process ended, in words; 128 + N, of a shell or of the job itself, is a signal as well."""
    number = -status if status < 0 else status - 128
    known = number in {one.value for one in signal.Signals}
    return f"was ended by {signal.Signals(number).name}" if known else f"failed with exit status {status}"


def _usage(root: int) -> tuple[float, dict[int, float]]:
    """Return the resident MiB of a process and all below it, and the CPU seconds of each."""
    parents, resident, cpu = {}, {}, {}
    ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            pid = int(folder.name)
            parents[pid] = int(fields[1])
            cpu[pid] = (int(fields[11]) + int(fields[12])) / ticks
            resident[pid] = int(fields[21]) * page / 2**20
    mine = {root}
    while more := {pid for pid, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return sum(resident.get(pid, 0) for pid in mine), {pid: cpu[pid] for pid in mine if pid in cpu}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; return 0 if all totals agree and every bound holds."""
    chosen = _parse(arguments)
    work = Path(chosen.work)
    found: list[Measured] = []
    for records in chosen.records:
        data = work / f"records-{records}"
        found += _generated(data, records, max(1, records * 30 // 100_000_000))
        answer = json.loads((data / "answer.json").read_text())
        for job in JOBS:
            expected = {name: answer[job]["headline"][name] for name in NAMES[job]}
            found += _both(chosen, job, records, data, work / f"out-{records}", expected)
    hour = _hour(chosen, work)
    bounds = _bounds(found, hour)
    _write([*found, *hour], bounds, chosen, Path(chosen.results))
    for bound in bounds:
        print(bound)
    return 0 if all(bound.holds for bound in bounds) else 1


def _generated(data: Path, records: int, days: int) -> list[Measured]:
    """Make records, unless they exist; return how long that took."""
    if (data / "answer.json").exists():
        return []
    print(f"Generating {records:,} records of {days} days ...", flush=True)
    command = [*SPARK, "generate", "--output", str(data), "--records", str(records), "--days", str(days)]
    measured = Measured(records, "generate", "pyarrow", *measure(command))
    _say(measured)
    return [measured]


def _hour(chosen: Any, work: Path) -> list[Measured]:
    """Measure the reports of an hour, as the schedule starts them one after the other; the 23 hours before are the
    look-back.
    """
    data = work / "records-of-a-day"
    _generated(data, 24 * HOUR_RECORDS, 1)
    given = ["--input", str(data), "--output", str(work / "out-hour"), "--memory", chosen.memory, "--progress", "json"]
    given += ["--from", "2026-01-01T23:00Z", "--to", "2026-01-02T00:00Z"]
    found = []
    for job in JOBS:
        found.append(Measured(HOUR_RECORDS, f"{job}, an hour", "Spark", *measure([*SPARK, job, *given])))
        _say(found[-1])
    return found


@dataclass(frozen=True)
class Bound:
    """A number with a maximum."""

    about: str
    value: float
    most: float
    unit: str

    @property
    def holds(self) -> bool:
        return self.value <= self.most

    def __str__(self) -> str:
        return f"{self.about}: {self.value:.1f} {self.unit} ({'within' if self.holds else 'beyond'} {self.most:g})"


def _bounds(found: list[Measured], hour: list[Measured]) -> list[Bound]:
    """Return the bounds on the measurements."""
    fewest, most = min(m.records for m in found), max(m.records for m in found)
    bounds = []
    for job in JOBS:
        took = {(m.records, m.engine): m.wall_s for m in found if m.job == job}
        ratio = took[most, "Spark"] / took[most, "DuckDB"]
        bounds.append(Bound(f"{job} of {most:,}", ratio, RATIO_MAX, "times DuckDB's time"))
        if fewest < most:
            growth = took[most, "Spark"] / most / (took[fewest, "Spark"] / fewest)
            about = f"{job} of {most:,}, each record"
            bounds.append(Bound(about, growth, GROWTH_MAX, f"times its time of {fewest:,}"))
    about = f"access and load of an hour of {HOUR_RECORDS:,}"
    return [*bounds, Bound(about, sum(m.wall_s for m in hour), HOUR_MAX_S, "seconds")]


def _both(
    chosen: argparse.Namespace, job: str, records: int, data: Path, out: Path, expected: dict[str, int]
) -> list[Measured]:
    duck = [
        sys.executable,
        "-m",
        "spark.bench",
        "--duckdb",
        job,
        "--data",
        str(data),
        "--out",
        str(out / f"duckdb-{job}"),
    ]
    duck += ["--memory", chosen.memory, "--threads", str(chosen.threads)]
    one = Measured(records, job, "DuckDB", *measure(duck))
    _say(one)
    spark = [*SPARK, job, "--input", str(data), "--output", str(out), "--master", f"local[{chosen.threads}]"]
    other = Measured(records, job, "Spark", *measure([*spark, "--memory", chosen.memory, "--progress", "none"]))
    _say(other)
    from spark.locations import Location
    from spark.writing import current

    report = current(Location(str(out)), job) or {}
    ours = {name: report["headline"][name]["value"] for name in NAMES[job]}
    theirs = json.loads((out / f"duckdb-{job}" / "totals.json").read_text())
    if not ours == theirs == expected:
        raise SystemExit(f"{job}: totals differ: Spark {ours}, DuckDB {theirs}, generated {expected}")
    return [one, other]


def _say(one: Measured) -> None:
    print(
        f"{one.records:>12,}  {one.job:10} {one.engine:8} {one.wall_s:8.1f} s  {one.cpu_s:8.1f} CPU-s  "
        f"{one.peak_mib:7.0f} MiB",
        flush=True,
    )


def _ratios(found: list[Measured]) -> dict[tuple[int, str], float]:
    times = {(m.records, m.job, m.engine): m.wall_s for m in found if m.job in JOBS}
    return {(r, j): t / times[r, j, "DuckDB"] for (r, j, engine), t in times.items() if engine == "Spark"}


def _write(found: list[Measured], bounds: list[Bound], chosen: argparse.Namespace, folder: Path) -> None:
    """Write spark.md and spark.png, with the circumstances."""
    folder.mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()[1]
    lines = [
        f"{platform.machine()}, {os.cpu_count()} cores, Spark and DuckDB with {chosen.threads} threads and "
        f"{chosen.memory} each; "
        f"mean load of the machine in the last five minutes: {load:.1f}." + (f" {chosen.note}" if chosen.note else ""),
        "",
        "| records | job | engine | seconds | CPU-seconds | peak MiB | records/s |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {m.records:,} | {m.job} | {m.engine} | {m.wall_s:.1f} | {m.cpu_s:.1f} | {m.peak_mib:.0f} | "
        f"{m.records / m.wall_s:,.0f} |"
        for m in found
    ]
    lines += ["", "Spark's time by DuckDB's:", ""]
    lines += [f"- {job} of {records:,}: {ratio:.1f}" for (records, job), ratio in _ratios(found).items()]
    lines += ["", "What must hold:", "", *(f"- {bound}" for bound in bounds)]
    (folder / "spark.md").write_text("\n".join(lines) + "\n")
    (folder / "spark.json").write_text(json.dumps([asdict(m) for m in found], indent=1) + "\n")
    _plot(found, folder / "spark.png")


def _plot(found: list[Measured], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4))
    for axis, name, title in ((axes[0], "wall_s", "seconds"), (axes[1], "peak_mib", "peak resident MiB")):
        for engine, colour in (("Spark", "#c0392b"), ("DuckDB", "#2b5fa8")):
            for job, style in (("access", "o-"), ("load", "s--")):
                mine = sorted((m.records, getattr(m, name)) for m in found if (m.engine, m.job) == (engine, job))
                axis.plot(
                    [r / 1e6 for r, _ in mine], [v for _, v in mine], style, color=colour, label=f"{engine}, {job}"
                )
        axis.set(xlabel="million records", ylabel=title)
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    axes[0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def _parse(arguments: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(
        prog="python -m spark.bench", description="Reports against DuckDB (docs/reports.md)."
    )
    parser.add_argument(
        "--records",
        type=lambda text: [int(n) for n in text.replace("_", "").split(",")],
        default=[10_000_000, 100_000_000],
    )
    parser.add_argument(
        "--work",
        default=str(ROOT / "bench" / "work" / "spark"),
        help="folder for records and reports; kept, so that a second run need not generate records",
    )
    parser.add_argument(
        "--results", default=str(ROOT / "bench" / "results"), help="folder for spark.md, spark.json, spark.png"
    )
    parser.add_argument("--memory", default="1g", help="memory of each engine")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--note", default="", help="a sentence about the circumstances, for the table")
    parser.add_argument("--duckdb", choices=JOBS, help=argparse.SUPPRESS)
    parser.add_argument("--data", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    options = _parse(None)
    if options.duckdb:
        duckdb(options.duckdb, options.data, options.out, f"{options.memory.upper()}B", options.threads)
        sys.exit(0)
    sys.exit(main())
