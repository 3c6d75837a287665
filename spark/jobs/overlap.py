"""The overlap report: regions of RPs with nearly the same subscribers."""

from __future__ import annotations

import pyarrow.compute as pc

from spark.jobs.running import Work
from spark.problems import JobProblem
from spark.report import TOP_ROWS, Order
from spark.transforms import overlap

MEMBERS_SHOWN_MAX = 500


def build(work: Work) -> None:
    """Make the tables and the summary."""
    summary = work.summary
    with work.step("subscribers"):
        pairs = overlap.subscribers(work.records(overlap.COLUMNS)).persist()
        sizes = overlap.sizes(pairs).persist()
        readings, rps = pairs.count(), sizes.count()
    try:
        edges = work.write("pairs", overlap.verified(overlap.candidates(pairs, sizes), pairs, sizes))
        with work.step("connect"):
            found = edges.select("rp_a", "rp_b").limit(overlap.EDGES_MAX + 1).toArrow()
            if found.num_rows > overlap.EDGES_MAX:
                raise JobProblem(f"More than {overlap.EDGES_MAX:,} pairs of RPs overlap. Request a shorter period.")
            joined = overlap.connected(zip(found["rp_a"].to_pylist(), found["rp_b"].to_pylist(), strict=True))
            regions = work.spark.createDataFrame(joined, "rp string, region string")
        members = work.write("members", overlap.members(regions, sizes))
        work.write("regions", overlap.regions(members, pairs, edges))
    finally:
        pairs.unpersist()
        sizes.unpersist()
    with work.step("summary"):
        found = summary.count("regions")
        summary.number("regions", found, "regions", "Groups of RPs with nearly the same subscribers.")
        summary.number("rps_in_regions", summary.total("regions", "rps"), "rendezvous points", "RPs in a region.")
        summary.number("rps_compared", rps, "rendezvous points", "RPs with two subscribers or more.")
        summary.number("readings", readings, "readings", "Distinct (RP, subscriber) pairs of the domain.")
        saved = summary.total("regions", "saved_readings")
        summary.number("saved_readings", saved, "readings", "Readings saved if each subscriber read a region as one.")
        best: Order = [("saved_readings", "descending"), ("region", "ascending")]
        summary.top("regions", "Regions with the greatest saving.", "regions", best)
        shown = pc.field("region").isin([row["region"] for row in summary.first("regions", best, TOP_ROWS)])
        order: Order = [("region", "ascending"), ("rp", "ascending")]
        summary.top("members", "The RPs of these regions; at most 500.", "members", order, MEMBERS_SHOWN_MAX, shown)
