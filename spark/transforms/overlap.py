"""Regions: groups of RPs with nearly the same subscribers, found without comparing every RP with every other.

1. Each RP's set of subscribers becomes a signature of HASHES numbers: for each of as many hash functions (xxhash64 with
   another seed) the least hash of a member. Two sets agree in a place with the probability of their Jaccard index
   (Broder 1997).
2. Signatures are cut into BANDS bands. RPs that agree in a whole band are candidates: a pair of index 0.8 is missed with
   probability (1 - 0.8^4)^16 = 0.0002, one of 0.3 is compared in vain with 0.12 (Leskovec et al., Mining of Massive
   Datasets, 3.4).
3. Candidates are verified by their exact index. What holds them together are the verified pairs.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

COLUMNS = ("operation", "outcome", "principal", "rp")
HASHES = 64
BANDS = 16
JACCARD_MIN = 0.8
SUBSCRIBERS_MIN = 2  # RPs of one subscriber each are all alike, and there is nothing to batch
ALL_PAIRS_MAX = 32
"""RPs in one bucket that are all paired; in a larger one each is paired with this many that follow by id, so that a
thousand RPs with the same subscribers make 32,000 candidates instead of half a million. They are still one region.
"""

EDGES_MAX = 2_000_000
"""Verified pairs that are joined to regions, on one machine: 200 MB."""


def subscribers(records: DataFrame) -> DataFrame:
    """Return the distinct (rp, principal) pairs of deliveries, pulls and begun readings."""
    read = F.col("operation").isin("deliver", "history", "subscribe") & (F.col("outcome") == "ok")
    return records.where(read & (F.col("rp") != "") & (F.col("principal") != "")).select("rp", "principal").distinct()


def sizes(pairs: DataFrame) -> DataFrame:
    """Return the number of subscribers of each RP that has SUBSCRIBERS_MIN."""
    return (
        pairs.groupBy("rp").agg(F.count(F.lit(1)).alias("subscribers")).where(F.col("subscribers") >= SUBSCRIBERS_MIN)
    )


def candidates(pairs: DataFrame, counted: DataFrame) -> DataFrame:
    """Return pairs of RPs (rp_a < rp_b) that are similar by MinHash."""
    member = F.xxhash64("principal")
    signatures = (
        pairs.join(counted.select("rp"), "rp", "left_semi")
        .withColumn("member", member)
        .groupBy("rp")
        .agg(*(F.min(F.xxhash64(F.lit(seed), F.col("member"))).alias(f"h{seed}") for seed in range(HASHES)))
    )
    rows = HASHES // BANDS
    bands = [F.xxhash64(F.lit(band), *(F.col(f"h{band * rows + row}") for row in range(rows))) for band in range(BANDS)]
    banded = signatures.select("rp", F.explode(F.array(*bands)).alias("band"))
    order = Window.partitionBy("band").orderBy("rp").rowsBetween(1, ALL_PAIRS_MAX)
    followers = banded.withColumn("others", F.collect_list("rp").over(order))
    return followers.select(F.col("rp").alias("rp_a"), F.explode("others").alias("rp_b")).distinct()


def verified(found: DataFrame, pairs: DataFrame, counted: DataFrame) -> DataFrame:
    """Return those candidates whose exact Jaccard index is JACCARD_MIN or more."""
    alike = found.join(counted.withColumnsRenamed({"rp": "rp_a", "subscribers": "size_a"}), "rp_a")
    alike = alike.join(counted.withColumnsRenamed({"rp": "rp_b", "subscribers": "size_b"}), "rp_b")
    # Sets whose sizes differ by more than the index allows need not be compared.
    alike = alike.where(F.least("size_a", "size_b") >= JACCARD_MIN * F.greatest("size_a", "size_b"))
    common = (
        alike.join(pairs.withColumnRenamed("rp", "rp_a"), "rp_a")
        .join(pairs.withColumnRenamed("rp", "rp_b"), ["rp_b", "principal"])
        .groupBy("rp_a", "rp_b", "size_a", "size_b")
        .agg(F.count(F.lit(1)).alias("common"))
    )
    either = common.withColumn("either", F.col("size_a") + F.col("size_b") - F.col("common"))
    return either.withColumn("jaccard", F.col("common") / F.col("either")).where(F.col("jaccard") >= JACCARD_MIN)


def connected(edges: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return (rp, region) of everything that the edges connect; a region is named by its smallest id. Union-find."""
    parent: dict[str, str] = {}

    def root(of: str) -> str:
        parent.setdefault(of, of)
        while parent[of] != of:
            parent[of] = parent[parent[of]]
            of = parent[of]
        return of

    for one, other in edges:
        low, high = sorted((root(one), root(other)))
        parent[high] = low
    return [(rp, root(rp)) for rp in sorted(parent)]


def members(joined: DataFrame, counted: DataFrame) -> DataFrame:
    """Return a row for each RP in a region, from `connected` (rp, region) and `sizes`."""
    return joined.join(counted, "rp")


def regions(members: DataFrame, pairs: DataFrame, edges: DataFrame) -> DataFrame:
    """Return a row for each region, from `members`, `subscribers` and `verified`; greatest saving first."""
    region_of = members.select("rp", "region")
    inside = pairs.join(region_of, "rp")
    read = inside.groupBy("region").agg(
        F.countDistinct("rp").alias("rps"),
        F.countDistinct("principal").alias("subscribers"),
        F.count(F.lit(1)).alias("readings"),
    )
    least = (
        edges.join(region_of.withColumnRenamed("rp", "rp_a"), "rp_a")
        .groupBy("region")
        .agg(F.min("jaccard").alias("least_jaccard"))
    )
    saved = read.join(least, "region").withColumn("saved_readings", F.col("readings") - F.col("subscribers"))
    return saved.orderBy(F.desc("saved_readings"), "region")
