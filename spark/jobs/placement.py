"""The placement report: which replicas would save traffic."""

from __future__ import annotations

import pyarrow.compute as pc

from spark.jobs.running import Work
from spark.report import Order
from spark.transforms import placement


def build(work: Work) -> None:
    """Make the tables and say what they say."""
    summary = work.summary
    read = work.records(placement.COLUMNS)
    advice = work.write("advice", placement.advice(placement.readings(read, work.request.domain)))
    work.write("domains", placement.domains(advice))
    with work.step("summary"):
        summary.number("bytes_now", summary.total("domains", "bytes_now"), "bytes", "Sent to readers of other domains.")
        summary.number("recommended", summary.total("domains", "recommended"), "replicas", "That are advised.")
        summary.number(
            "saved_bytes", summary.total("domains", "saved_bytes"), "bytes", "Saved by following the advice."
        )
        summary.number("domains", summary.count("domains"), "domains", "Whose principals read here.")
        best: Order = [("saved_bytes", "descending"), ("rp", "ascending"), ("domain", "ascending")]
        summary.top("advice", "Replicas that would save most.", "advice", best, where=pc.field("recommended"))
        most: Order = [("bytes_now", "descending"), ("domain", "ascending")]
        summary.top("domains", "Domains that read most here.", "domains", most)
