"""Results of a run: tables in the terminal, latest.json, latest.md, and the plot of the fan-out."""

from __future__ import annotations

import json
import platform
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.measure import BenchMeasurement, Options
from bench.peers import SERVERS
from bench.targets import CHANGE_P99_MS_MAX, Check, checks

_PUBLISH = [
    ("events_per_cpu_s", "events per CPU-s", ",.0f"),
    ("events_per_s", "events/s", ",.0f"),
    ("answer_p50_ms", "p50 ms", ".1f"),
    ("answer_p99_ms", "p99 ms", ".1f"),
]
_COLUMNS: dict[str, list[tuple[str, str, str]]] = {
    "fanout": [
        ("published_per_s", "published/s", ",.0f"),
        ("deliveries_per_cpu_s", "deliveries per CPU-s", ",.0f"),
        ("p50_ms", "p50 ms", ".1f"),
        ("p99_ms", "p99 ms", ".1f"),
        ("lost", "lost", ",.0f"),
    ],
    "publish": _PUBLISH,
    "batches": _PUBLISH,
    "idle": [
        ("sessions", "sessions", ",.0f"),
        ("resident_kib_each", "KiB each", ".1f"),
        ("accepts_per_cpu_s", "accepts per CPU-s", ",.0f"),
        ("subscribes_per_cpu_s", "subscribes per CPU-s", ",.0f"),
        ("one_event_to_all_ms", "one event to all, ms", ",.0f"),
    ],
    "many-rps": [
        ("one_events_per_cpu_s", "one RP: events per CPU-s", ",.0f"),
        ("many_events_per_cpu_s", "many: events per CPU-s", ",.0f"),
        ("ratio", "ratio", ".2f"),
    ],
    "catchup": [("events_per_s", "events/s", ",.0f"), ("events_per_cpu_s", "events per CPU-s", ",.0f")],
    "federation": [
        ("events_per_s", "events/s", ",.0f"),
        ("p50_ms", "p50 ms", ",.0f"),
        ("p99_ms", "p99 ms", ",.0f"),
        ("requests_per_s", "requests/s", ",.1f"),
        ("ratio", "ratio", ".2f"),
        ("resident_mib", "sender MiB", ",.0f"),
        ("resident_most_mib", "most", ",.0f"),
        ("payloads_per_receiver", "payloads per receiver", ".3f"),
        ("redundant_per_event", "redundant per event", ".3f"),
        ("redundant_before_rest", "before rest", ".3f"),
    ],
    "forwarded-many": [
        ("one_events_per_s", "one RP: events/s", ",.0f"),
        ("many_events_per_s", "many: events/s", ",.0f"),
        ("ratio", "ratio", ".3f"),
        ("one_events_per_cpu_s", "one RP: events per CPU-s", ",.0f"),
        ("many_events_per_cpu_s", "many: events per CPU-s", ",.0f"),
        ("cpu_ratio", "ratio", ".2f"),
        ("one_p99_ms", "one RP: p99 ms", ",.0f"),
        ("many_p99_ms", "many: p99 ms", ",.0f"),
    ],
    "console": [
        ("changes", "changes", ",.0f"),
        ("p50_ms", "p50 ms", ",.0f"),
        ("p99_ms", "p99 ms", ",.0f"),
        ("max_ms", "most ms", ",.0f"),
        ("kib", "KiB", ",.0f"),
        ("warm_kib", "KiB again", ",.0f"),
        ("server_ms", "server ms", ",.0f"),
        ("cold_ms", "usable ms", ",.0f"),
        ("warm_ms", "usable again ms", ",.0f"),
        ("without_percent", "CPU % without", ",.1f"),
        ("consoles_percent", "CPU % with", ",.1f"),
        ("heap_mib", "heap MiB", ",.2f"),
        ("heap_growth_mib", "heap growth", ",.2f"),
        ("growth_mib", "gateway's growth MiB", ",.1f"),
    ],
    "push": [
        ("requests_per_cpu_s", "requests per CPU-s", ",.0f"),
        ("events_per_cpu_s", "events per CPU-s", ",.0f"),
        ("events_per_s", "events/s", ",.0f"),
        ("p50_ms", "p50 ms", ",.0f"),
        ("p99_ms", "p99 ms", ",.0f"),
        ("ratio", "ratio", ".2f"),
        ("all_ms", "to all, ms", ",.0f"),
        ("growth_mib", "growth MiB", ",.1f"),
        ("subscriptions_mib", "of subscriptions", ",.1f"),
    ],
    "idle-domain": [
        ("processes", "processes", ",.0f"),
        ("pss_mib", "MiB", ",.0f"),
        ("cpu_ms_per_s", "ms/s of a core", ",.1f"),
        ("wakeups_per_s", "wake-ups/s", ",.0f"),
        ("first_publish_ms", "first publish ms", ",.1f"),
        ("start_s", "start s", ",.1f"),
    ],
    "gateways": [
        ("deliveries_per_cpu_s", "deliveries per CPU-s", ",.0f"),
        ("events_per_cpu_s", "publishes per CPU-s", ",.0f"),
        ("ratio", "ratio", ".2f"),
        ("p99_ms", "p99 ms", ",.1f"),
    ],
}
TITLES = {
    "fanout": "Fan-out to WebSocket sessions of one RP",
    "publish": "Single-event publishes, each answered before the next",
    "batches": "Publishing in bulk",
    "idle": "Idle sessions",
    "many-rps": "Many RPs against one at the same rate, one reader per event",
    "catchup": "Catching up from the log, one session",
    "federation": "Between domains",
    "forwarded-many": "Many RPs between two domains, against one at the same rate",
    "console": "The live console",
    "push": "Push to endpoints of subscribers",
    "idle-domain": "A whole domain in which nothing happens",
    "gateways": "Two gateways against one",
}
LATEST = "latest"
_COLOURS = {"herald": "#c0392b", "nchan": "#2c7a3f", "nats": "#2b5fa8", "channels": "#8a6d3b"}


def rows(scenario: str, measurements: Sequence[BenchMeasurement]) -> list[list[str]]:
    """Return the table of one scenario, header first; cases together, so that servers are side by side."""
    mine = [m for m in measurements if m.scenario == scenario]
    columns = _COLUMNS[scenario]
    table = [["case", "server", *(title for _, title, _ in columns), ""]]
    for case in dict.fromkeys(m.case for m in mine):
        for m in (m for m in mine if m.case == case):
            numbers = [format(m.values[key], form) if key in m.values else "-" for key, _, form in columns]
            remarks = "; ".join([*(f"! {flaw}" for flaw in m.flaws), *m.notes])
            table.append([case, SERVERS[m.server].label, *numbers, remarks])
    return table


def print_table(table: Sequence[Sequence[str]]) -> None:
    """Print a table: the first two columns and the last to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for row in table:
        cells = [
            cell.ljust(width) if column < 2 or column == len(row) - 1 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  " + "  ".join(cells).rstrip())


def check_rows(found: Sequence[Check]) -> list[list[str]]:
    """Return the table of targets, header first."""
    table = [["target", "", "wanted", "measured", ""]]
    return table + [
        [check.what, "", check.wanted, check.measured, "pass" if check.passed else "MISS"] for check in found
    ]


def machine() -> dict[str, Any]:
    """Return a description of the machine."""
    model = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
    return {
        "processor": model,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "nginx": _version(["nginx", "-v"]),
        "nats-server": _version(["nats-server", "-v"]),
    }


def _version(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except OSError:
        return "not installed"
    return (done.stdout or done.stderr).strip().splitlines()[0]


def write(
    folder: Path,
    measurements: Sequence[BenchMeasurement],
    options: Options,
    elapsed_s: float,
    skipped: Sequence[str],
    *,
    name: str = LATEST,
) -> list[Path]:
    """Write NAME.json, NAME.md and the plots of the measurements into `folder`; return the files written."""
    folder.mkdir(exist_ok=True)
    found = checks(measurements)
    about = {
        "finished": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "elapsed_s": round(elapsed_s),
        "machine": machine(),
        "options": {name: getattr(options, name) for name in Options.__slots__},
        "skipped": list(skipped),
    }
    document = {
        **about,
        "measurements": [m.as_dict() for m in measurements],
        "targets": [{name: getattr(check, name) for name in Check.__slots__} for check in found],
    }
    written = [folder / f"{name}.json", folder / f"{name}.md"]
    written[0].write_text(json.dumps(document, indent=1) + "\n")
    written[1].write_text(_markdown(measurements, found, about))
    if any(m.scenario == "fanout" for m in measurements):
        written.append(folder / "fanout.png")
        plot(measurements, written[-1])
    if any(m.scenario == "console" for m in measurements):
        written.append(folder / "console.png")
        plot_console(measurements, written[-1])
    return written


def _markdown(measurements: Sequence[BenchMeasurement], found: Sequence[Check], about: dict[str, Any]) -> str:
    where = ", ".join(
        f"{name} {value}" if name != "processor" else str(value) for name, value in about["machine"].items()
    )
    parts = [
        "# Benchmark results\n",
        f"Made by `make bench`, finished {about['finished']} after {about['elapsed_s']} s. {where}.",
        "What the numbers mean and how they are measured: [docs/benchmarks.md](../../docs/benchmarks.md).\n",
        *(f"Skipped: {reason}.\n" for reason in about["skipped"]),
    ]
    present = [scenario for scenario in TITLES if any(m.scenario == scenario for m in measurements)]
    for scenario in present:
        parts += [f"## {TITLES[scenario]}\n", _markdown_table(rows(scenario, measurements))]
        if scenario == "fanout":
            parts.append("![Deliveries per server CPU-second by rate](fanout.png)\n")
        if scenario == "console":
            parts.append("![Delays of changes by kind, and what a page holds in an hour](console.png)\n")
    if found:
        parts += ["## Targets\n", _markdown_table([[row[0], *row[2:]] for row in check_rows(found)])]
    return "\n".join(parts)


def _markdown_table(table: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in table]
    lines.insert(1, "|" + "---|" * len(table[0]))
    return "\n".join(lines) + "\n"


def plot(measurements: Sequence[BenchMeasurement], path: Path) -> None:
    """Plot deliveries per server CPU-second by rate, one line per server, both axes logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    mine = [m for m in measurements if m.scenario == "fanout"]
    figure, axes = pyplot.subplots(figsize=(8, 5), dpi=120)
    rates = sorted({m.values["rate_per_s"] for m in mine})
    for server in dict.fromkeys(m.server for m in mine):
        points = sorted((m.values["rate_per_s"], m.values["deliveries_per_cpu_s"]) for m in mine if m.server == server)
        colour = _COLOURS[server]
        axes.plot(*zip(*points, strict=True), marker="o", linewidth=2, color=colour, label=SERVERS[server].label)
        axes.annotate(
            SERVERS[server].label, points[-1], xytext=(8, 0), textcoords="offset points", color=colour, va="center"
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlim(rates[0] * 0.85, rates[-1] * 2.8)
    axes.grid(axis="y", color="#dddddd")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("events per second, each to every session")
    axes.set_ylabel("deliveries per server CPU-second")
    axes.set_title("Fan-out of 128-byte events to WebSocket sessions of one RP", loc="left")
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


def plot_console(measurements: Sequence[BenchMeasurement], path: Path) -> None:
    """Plot the delay of each kind of change on the screen, and the memory of a page's scripts at each minute of an
    hour.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    mine = [m for m in measurements if m.scenario == "console"]
    kinds = [m for m in mine if m.case.startswith("change: ") and "p99_ms" in m.values]
    kinds.sort(key=lambda m: m.values["p99_ms"])
    figure, (delays, hour) = pyplot.subplots(1, 2, figsize=(11, 5), dpi=120, width_ratios=(3, 2))
    colour = _COLOURS["herald"]
    delays.barh([m.case.removeprefix("change: ") for m in kinds], [m.values["p99_ms"] for m in kinds], color="#e3b0a9")
    delays.barh([m.case.removeprefix("change: ") for m in kinds], [m.values["p50_ms"] for m in kinds], color=colour)
    delays.axvline(CHANGE_P99_MS_MAX, color="#555555", linestyle=":", linewidth=1.5)
    delays.set_xlabel("ms from the answer to the screen: dark p50, light p99, dotted the target")
    delays.set_title("Changes on the screen", loc="left")
    for heap in (m for m in mine if "heap_mib" in m.values):
        minutes = [value for name, value in heap.values.items() if name.startswith("minute_")]
        hour.plot(range(len(minutes)), minutes, color=colour, linewidth=2)
        hour.set_ylim(0, max(minutes) * 1.3)
    hour.set_xlabel("minutes of samples, one a second")
    hour.set_ylabel("MiB held by the overview's scripts")
    hour.set_title("An hour of live updates", loc="left")
    for axes in (delays, hour):
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
