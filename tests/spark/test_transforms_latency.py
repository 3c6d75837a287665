"""Histograms of latencies: buckets, their bounds, and quantiles of sums of them."""

from __future__ import annotations

import random

import pytest

from spark.transforms import latency
from tests.spark import bruteforce
from tests.spark.frames import Frames, distinct

pytestmark = [pytest.mark.long, pytest.mark.processes]

HISTOGRAM = {"who": "string", "bucket": "int", "operations": "bigint"}


def histogram(who: str, *counts: tuple[int, int]) -> list[dict[str, object]]:
    return [{"who": who, "bucket": bucket, "operations": operations} for bucket, operations in counts]


def test_buckets_are_the_same_in_any_language(frames: Frames) -> None:
    values = {
        0,
        *range(40),
        *(max(0, (1 << n) + d) for n in range(61) for d in (-1, 0, 1)),
        *(random.Random(5).randrange(2**44) for _ in range(200)),
    }
    given = frames.of({"latency_us": "bigint"}, *({"latency_us": value} for value in sorted(values)))
    found = latency.with_bucket(given)
    assert found.columns == ["latency_us", "bucket"]
    for value, bucket, low, high in distinct(
        found.withColumn("low", latency.begin()).withColumn("high", latency.end())
    ):
        assert bucket == bruteforce.bucket(value)
        if value:
            assert low <= value < high
            assert high - low <= max(1, value / 8)


def test_buckets_begin_and_end_as_documented(frames: Frames) -> None:
    given = frames.of({"bucket": "int"}, *({"bucket": bucket} for bucket in (0, 1, 15, 16, 23, 24, 360)))
    found = given.select("bucket", latency.begin(), latency.end(), latency.middle())
    assert distinct(found) == {
        (0, 0, 1, 0.0),
        (1, 1, 2, 1.0),
        (15, 15, 16, 15.0),
        (16, 16, 18, 16.5),
        (23, 30, 32, 30.5),
        (24, 32, 36, 33.5),
        (360, 2**47, 9 * 2**44, (17 * 2**44 - 1) / 2),
    }


def test_a_latency_that_is_none_has_a_bucket_of_its_own(frames: Frames) -> None:
    given = frames.of({"latency_us": "bigint"}, {"latency_us": 0}, {"latency_us": -3})
    assert distinct(latency.with_bucket(given)) == {(0, latency.NONE), (-3, latency.NONE)}


def test_a_quantile_is_the_middle_of_the_bucket_of_its_rank(frames: Frames) -> None:
    given = frames.of(
        HISTOGRAM,
        *histogram("one", (20, 1)),
        *histogram("two", (1, 1), (2, 1)),
        *histogram("at the rank", (3, 999), (20, 1)),
        *histogram("beyond the rank", (3, 998), (20, 2)),
        *histogram("in parts", (5, 1), (5, 1), (5, 1), (9, 2)),
    )
    assert distinct(latency.quantiles(given, ["who"], ["p50", "p999"])) == {
        ("one", 24.5, 24.5),
        ("two", 1.0, 2.0),
        ("at the rank", 3.0, 3.0),
        ("beyond the rank", 3.0, 24.5),
        ("in parts", 5.0, 9.0),
    }


def test_no_latencies_have_no_quantiles(frames: Frames) -> None:
    found = latency.quantiles(frames.of(HISTOGRAM), ["who"], ["p50"])
    assert found.columns == ["who", "p50_us"]
    assert distinct(found) == set()
