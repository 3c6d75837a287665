"""The placement report: recommended replicas and their savings."""

from __future__ import annotations

import pyarrow.compute as pc

from spark.jobs.running import Work
from spark.report import Order
from spark.transforms import placement


def build(work: Work) -> None:
    """Make the tables and the summary."""
    summary = work.summary
    read = work.records(placement.COLUMNS)
    advice = work.write("advice", placement.advice(placement.readings(read, work.request.domain)))
    work.write("domains", placement.domains(advice))
    with work.step("summary"):
        summary.number(
            "bytes_now", summary.total("domains", "bytes_now"), "bytes", "Bytes sent to readers of other domains."
        )
        summary.number("recommended", summary.total("domains", "recommended"), "replicas", "Recommended replicas.")
        summary.number(
            "saved_bytes",
            summary.total("domains", "saved_bytes"),
            "bytes",
            "Bytes saved by following the recommendation.",
        )
        summary.number("domains", summary.count("domains"), "domains", "Domains whose principals read here.")
        best: Order = [("saved_bytes", "descending"), ("rp", "ascending"), ("domain", "ascending")]
        summary.top("advice", "Replicas with the greatest saving.", "advice", best, where=pc.field("recommended"))
        most: Order = [("bytes_now", "descending"), ("domain", "ascending")]
        summary.top("domains", "Domains with most reading here.", "domains", most)
