"""The federation report: silences, backlogs and failures of peers."""

from __future__ import annotations

from spark.jobs.running import Work
from spark.periods import END
from spark.report import Order
from spark.transforms import federation


def build(work: Work) -> None:
    """Make the tables and the summary."""
    period, summary = work.request.period, work.summary
    asked = federation.requests(work.records(federation.COLUMNS)).persist()
    end_us = int(period.end.timestamp() * 1_000_000) if period.end != END else None
    try:
        work.write("peers", federation.peers(asked, end_us))
        work.write("peer_hours", federation.peer_hours(asked))
        work.write("failures", federation.failures(asked))
    finally:
        asked.unpersist()
    with work.step("summary"):
        summary.number("peers", summary.count("peers"), "domains", "Peers with requests.")
        for name, unit, about in (
            ("operations", "operations", "Requests of peers."),
            ("refused", "operations", "Requests that were refused, a client error (4xx)."),
            ("failed", "operations", "Requests that failed, a server error (5xx)."),
            ("bytes_in", "bytes", "Bytes of the peers' requests."),
            ("bytes_out", "bytes", "Bytes of the answers."),
        ):
            summary.number(name, summary.total("peers", name), unit, about)
        silence = summary.extreme("peers", "silence_s_max", "max")
        summary.number(
            "silence_s_max", silence, "seconds", "The longest time between two successful requests of a peer."
        )
        backlog = summary.extreme("peers", "backlog_bytes_max", "max")
        summary.number("backlog_bytes_max", backlog, "bytes", "The greatest backlog after a silence.")
        slow: Order = [("silence_s_max", "descending"), ("peer", "ascending")]
        summary.top("peers", "Peers by their longest silence.", "peers", slow)
        often: Order = [
            ("operations", "descending"),
            ("peer", "ascending"),
            ("operation", "ascending"),
            ("reason", "ascending"),
        ]
        summary.top("failures", "Most frequent failures.", "failures", often)
