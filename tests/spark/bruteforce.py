"""What the reports must say, counted in plain Python, record by record, without any of the reports' code."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from itertools import combinations, pairwise
from typing import Any
from zoneinfo import ZoneInfo

Record = dict[str, Any]
Row = dict[str, Any]
COUNTS = ("operations", "refused", "failed", "events", "bytes_in", "bytes_out")


def hour_of(record: Record) -> datetime:
    at: datetime = record["time"]
    return at.replace(minute=0, second=0, microsecond=0)


def by(records: Iterable[Record], key: Callable[[Record], Any]) -> dict[Any, list[Record]]:
    groups: dict[Any, list[Record]] = defaultdict(list)
    for record in records:
        groups[key(record)].append(record)
    return groups


def counts(records: list[Record], seen: bool = True) -> Row:
    row: Row = {"operations": sum(r["count"] for r in records)}
    for outcome in ("refused", "failed"):
        row[outcome] = sum(r["count"] for r in records if r["outcome"] == outcome)
    for name in ("events", "bytes_in", "bytes_out"):
        row[name] = sum(r[name] for r in records)
    if seen:
        row |= {"first_seen": min(r["time"] for r in records), "last_seen": max(r["time"] for r in records)}
    return row


def principals(records: list[Record]) -> list[Row]:
    groups = by(records, lambda r: (r["principal"], r["issuer"]))
    return [
        {"principal": p, "issuer": i, **counts(some), "rps": len({r["rp"] for r in some} - {""})}
        for (p, i), some in groups.items()
    ]


def issuers(records: list[Record], home: str) -> list[Row]:
    return [
        {"issuer": i, "foreign": i not in ("", home), "principals": len({r["principal"] for r in some}), **counts(some)}
        for i, some in by(records, lambda r: r["issuer"]).items()
    ]


def peers(records: list[Record]) -> list[Row]:
    return [{"peer": p, **counts(some)} for p, some in by(records, lambda r: r["peer"]).items() if p]


def operations(records: list[Record]) -> list[Row]:
    groups = by(records, lambda r: (r["operation"], r["client"]))
    return [{"operation": o, "client": c, **counts(some)} for (o, c), some in groups.items()]


def rps(records: list[Record]) -> list[Row]:
    groups = by(records, lambda r: r["rp"])
    return [
        {"rp": rp, "principals": len({r["principal"] for r in some}), **counts(some)} for rp, some in groups.items()
    ]


def refusals(records: list[Record]) -> list[Row]:
    names = ("outcome", "reason", "operation", "principal", "issuer", "peer")
    groups = by((r for r in records if r["outcome"] != "ok"), lambda r: tuple(r[n] for n in names))
    rows = []
    for key, some in groups.items():
        row = counts(some)
        rows.append(dict(zip(names, key, strict=True)) | {n: row[n] for n in ("operations", "first_seen", "last_seen")})
    return rows


def hours(records: list[Record], zone: str) -> list[Row]:
    groups = by(records, lambda r: (hour_of(r), r["operation"]))
    return [
        {"hour": h, "day": h.astimezone(ZoneInfo(zone)).date(), "operation": o, **counts(some, seen=False)}
        for (h, o), some in groups.items()
    ]


def bucket(latency_us: int) -> int:
    """Log-linear: eight buckets for each doubling."""
    if latency_us <= 0:
        return -1
    shift = max(latency_us.bit_length() - 4, 0)
    return 8 * shift + (latency_us >> shift)


def quantile(records: Iterable[Record], per_mille: int) -> float | None:
    """The exact one: the ceil(q n)-th smallest latency of all operations that the records stand for."""
    latencies = sorted((r["latency_us"], r["count"]) for r in records if r["latency_us"] > 0)
    rank = -(-sum(count for _, count in latencies) * per_mille // 1000)
    for latency, count in latencies:
        rank -= count
        if rank <= 0:
            return float(latency)
    return None


def traffic(records: list[Record]) -> Row:
    good = [r for r in records if r["outcome"] == "ok"]
    published = [r for r in good if r["operation"] == "publish"]
    sent = [r for r in good if r["operation"] in ("deliver", "history")]
    deliver = [r for r in good if r["operation"] == "deliver"]
    events_in, deliveries = sum(r["events"] for r in published), sum(r["events"] for r in sent)
    return {
        "publishes": sum(r["count"] for r in published),
        "events_in": events_in,
        "bytes_in": sum(r["bytes_in"] for r in published),
        "deliveries": deliveries,
        "bytes_out": sum(r["bytes_out"] for r in sent),
        "moved": events_in + deliveries,
        "fan_out": deliveries / events_in if events_in else None,
        "reading_minutes": sum(r["sessions"] for r in deliver),
        "readers_max": max((r["sessions"] for r in deliver), default=0),
        "joined": sum(r["count"] for r in good if r["operation"] == "subscribe"),
        "left": sum(r["count"] for r in good if r["operation"] == "unsubscribe"),
        "refused": sum(r["count"] for r in records if r["outcome"] == "refused"),
        "failed": sum(r["count"] for r in records if r["outcome"] == "failed"),
    }


def published_quantiles(records: list[Record]) -> Row:
    good = [r for r in records if r["outcome"] == "ok" and r["operation"] == "publish"]
    return {"p50_us": quantile(good, 500), "p95_us": quantile(good, 950), "p99_us": quantile(good, 990)}


def load_rp_hours(records: list[Record]) -> list[Row]:
    groups = by(records, lambda r: (r["rp"], hour_of(r)))
    return [
        {
            "rp": rp,
            "hour": h,
            "operations": sum(r["count"] for r in some),
            **traffic(some),
            "rps_made": rps_made(some),
            **spent(some),
        }
        for (rp, h), some in groups.items()
    ]


def rps_made(records: list[Record]) -> int:
    """Created less deleted."""
    good = [r for r in records if r["outcome"] == "ok"]
    created, deleted = (
        sum(r["count"] for r in good if r["operation"] == f"rp.{what}") for what in ("create", "delete")
    )
    return created - deleted


def spent(records: list[Record]) -> Row:
    """The exact mean and the highest latency of good publishes."""
    timed = [r for r in records if r["outcome"] == "ok" and r["operation"] == "publish" and r["latency_us"] > 0]
    many = sum(r["count"] for r in timed)
    mean = sum(r["latency_us"] * r["count"] for r in timed) / many if many else None
    return {"mean_us": mean, "most_us": max((r["latency_us"] for r in timed), default=None)}


def load_rps(records: list[Record], zone: str) -> list[Row]:
    named = [r for r in records if r["rp"]]
    first, last = min(map(hour_of, named)), max(map(hour_of, named)) + timedelta(hours=1)
    middle = first + (last - first) / 2
    day = lambda r: hour_of(r).astimezone(ZoneInfo(zone)).date()  # noqa: E731
    first_day, days = min(map(day, named)), (max(map(day, named)) - min(map(day, named))).days
    rows = []
    for rp, some in by(named, lambda r: r["rp"]).items():
        moved = {h: traffic(group)["moved"] for h, group in by(some, hour_of).items()}
        peak = max(moved.items(), key=lambda item: (item[1], -item[0].timestamp()))
        one, two = (sum(n for h, n in moved.items() if (h < middle) == early) for early in (True, False))
        daily: defaultdict[int, int] = defaultdict(int)
        for record in some:
            daily[(day(record) - first_day).days] += traffic([record])["moved"]
        mean_x, mean_y = days / 2, sum(daily.values()) / (days + 1)
        spread = sum((x - mean_x) ** 2 for x in range(days + 1))
        slope = sum((x - mean_x) * (daily[x] - mean_y) for x in range(days + 1)) / spread if days else None
        rows.append(
            {
                "rp": rp,
                **traffic(some),
                **published_quantiles(some),
                "peak_hour": peak[0],
                "peak_events": peak[1],
                "growth": two / one if one else None,
                "growth_per_day": slope,
            }
        )
    return rows


def load_hours(records: list[Record], zone: str) -> list[Row]:
    return [
        {
            "hour": h,
            "day": h.astimezone(ZoneInfo(zone)).date(),
            "operations": sum(r["count"] for r in some),
            **traffic(some),
            "rps_made": rps_made(some),
            "active_rps": len({r["rp"] for r in some} - {""}),
            **published_quantiles(some),
        }
        for h, some in by(records, hour_of).items()
    ]


def load_days(records: list[Record], zone: str) -> list[Row]:
    groups = by(records, lambda r: hour_of(r).astimezone(ZoneInfo(zone)).date())
    return [{"day": d, "operations": sum(r["count"] for r in some), **traffic(some)} for d, some in groups.items()]


def histogram(records: list[Record], key: Callable[[Record], Any]) -> dict[tuple[Any, int], int]:
    """By `key` and bucket, of what succeeded."""
    found: dict[tuple[Any, int], int] = defaultdict(int)
    for r in records:
        if r["outcome"] == "ok" and r["latency_us"] > 0:
            found[key(r), bucket(r["latency_us"])] += r["count"]
    return found


def latencies(records: list[Record]) -> list[Row]:
    """Of each operation; `most_us` is where the highest latency's bucket ends."""
    timed = (r for r in records if r["outcome"] == "ok" and r["latency_us"] > 0)
    rows = []
    for operation, some in by(timed, lambda r: r["operation"]).items():
        most = max(r["latency_us"] for r in some)
        step = 1 << max(most.bit_length() - 4, 0)
        row = {
            "operation": operation,
            "operations": sum(r["count"] for r in some),
            "most_us": most // step * step + step,
        }
        asked = {"p50_us": 500, "p90_us": 900, "p95_us": 950, "p99_us": 990, "p999_us": 999}
        rows.append(row | {name: quantile(some, per_mille) for name, per_mille in asked.items()})
    return rows


def forecast(records: list[Record], zone: str, limits: dict[str, float]) -> list[Row]:
    """When limits will be reached, without `exhausted_at`; what stands still to a billionth is left out."""
    day = lambda at: at.astimezone(ZoneInfo(zone)).date().toordinal()  # noqa: E731
    good = [r for r in records if r["operation"] == "publish" and r["outcome"] == "ok"]
    rows = []
    for what in ("events", "bytes"):
        name = "events" if what == "events" else "bytes_in"
        everything = [("", records, good)]
        named = by((r for r in records if r["rp"]), lambda r: r["rp"])
        each = [(rp, some, [r for r in good if r["rp"] == rp]) for rp, some in named.items()]
        for whose, groups in (("rp", each), ("domain", everything)):
            limit = f"{whose}-publish-{what}"
            for subject, some, published in groups if limit in limits else ():
                rates: dict[int, float] = dict.fromkeys({day(hour_of(r)) for r in some}, 0.0)
                for h, group in by(published, hour_of).items():
                    rates[day(h)] = max(rates[day(h)], sum(r[name] for r in group) / 3600)
                rows.append({"limit": limit, "subject": subject, "unit": f"{what}/s", **_trend(rates, limits[limit])})
    if "domain-rps" in limits:
        there, counts_of_days = limits["domain-rps-used"], {}
        for number, some in sorted(by(records, lambda r: day(hour_of(r))).items(), reverse=True):
            counts_of_days[number] = there
            there -= rps_made(some)
        trend = _trend(counts_of_days, limits["domain-rps"])
        rows.append({"limit": "domain-rps", "subject": "", "unit": "rendezvous points", **trend})
    return [row for row in rows if grows(row)]


def grows(row: Row) -> bool:
    """Whether a forecast is about what grows, beyond the last places of floating point, or has reached its limit."""
    return bool(row["per_day"] > 1e-9 or row["now"] >= row["limit_value"])


def _trend(by_day: dict[int, float], limit: float) -> Row:
    x, y = sum(by_day) / len(by_day), sum(by_day.values()) / len(by_day)
    spread = sum((at - x) ** 2 for at in by_day)
    slope = sum((at - x) * (value - y) for at, value in by_day.items()) / spread if spread else 0.0
    now = by_day[max(by_day)]
    left = 0.0 if now >= limit else (limit - now) / slope if slope else None
    return {"now": now, "per_day": slope, "limit_value": limit, "days_left": left}


def activity(records: list[Record], zone: str) -> list[Row]:
    names = ("principal", "issuer", "peer")
    groups = by(records, lambda r: (hour_of(r), *(r[name] for name in names)))
    return [
        {
            "hour": h,
            "day": h.astimezone(ZoneInfo(zone)).date(),
            **dict(zip(names, who, strict=True)),
            **counts(some, seen=False),
        }
        for (h, *who), some in groups.items()
    ]


def fame(records: list[Record]) -> list[Row]:
    named = [r for r in records if r["rp"]]
    begin = min(map(hour_of, named))
    rows = []
    for rp, some in by(named, lambda r: r["rp"]).items():
        moved = {h: traffic(group)["moved"] for h, group in by(some, hour_of).items()}
        for h, events in moved.items():
            usual = sum(moved.get(h - timedelta(hours=n), 0) for n in range(1, 25)) / 24
            if h > begin and events >= 1_000 and events >= 5 * usual:
                rows.append(
                    {"rp": rp, "hour": h, "events": events, "usual": usual, "ratio": events / usual if usual else None}
                )
    return rows


def bursts(records: list[Record]) -> list[Row]:
    rows = []
    for (who, issuer), some in by(
        (r for r in records if r["outcome"] == "refused"), lambda r: (r["principal"], r["issuer"])
    ).items():
        hourly = {h: sum(r["count"] for r in group) for h, group in by(some, hour_of).items()}
        for h, refused in hourly.items():
            usual = sum(hourly.get(h - timedelta(hours=n), 0) for n in range(1, 25)) / 24
            if refused >= 100 and refused >= 10 * usual:
                rows.append(
                    {
                        "kind": "refusal-burst",
                        "subject": who,
                        "issuer": issuer,
                        "at": h,
                        "value": float(refused),
                        "usual": usual,
                    }
                )
    return rows


def news(records: list[Record], known: set[str], name: str, kind: str, home: str) -> list[Row]:
    rows = []
    for one, some in by(records, lambda r: r[name]).items():
        if one not in ("", home) and one not in known:
            value = float(sum(r["count"] for r in some))
            issuer = one if name == "issuer" else ""
            rows.append(
                {
                    "kind": kind,
                    "subject": one,
                    "issuer": issuer,
                    "at": min(map(hour_of, some)),
                    "value": value,
                    "usual": None,
                }
            )
    return rows


def awake(records: list[Record], before: list[Record]) -> list[Row]:
    rows = []
    past = by(before, lambda r: (r["principal"], r["issuer"]))
    for (who, issuer), some in by(
        (r for r in records if r["principal"]), lambda r: (r["principal"], r["issuer"])
    ).items():
        active = sorted(
            {hour_of(r) for r in some} | {max(map(hour_of, past[who, issuer]))}
            if past[who, issuer]
            else {hour_of(r) for r in some}
        )
        for one, other in pairwise(active):
            days = (other - one).total_seconds() / 86_400
            if days >= 14:
                rows.append(
                    {
                        "kind": "dormant-awake",
                        "subject": who,
                        "issuer": issuer,
                        "at": other,
                        "value": days,
                        "usual": None,
                    }
                )
    return rows


def placement(records: list[Record], home: str) -> list[Row]:
    good = [
        r
        for r in records
        if r["operation"] in ("deliver", "history")
        and r["outcome"] == "ok"
        and r["rp"]
        and r["issuer"] not in ("", home)
    ]
    rows = []
    for (rp, domain), some in by(good, lambda r: (r["rp"], r["issuer"])).items():
        replica = 0
        for minute in by(some, lambda r: r["time"].replace(second=0, microsecond=0)).values():
            each = by(minute, lambda r: (r["principal"], r["client"])).values()
            replica += max(sum(math.ceil(r["bytes_out"] / max(r["sessions"], 1)) for r in group) for group in each)
        now, readers = sum(r["bytes_out"] for r in some), len({r["principal"] for r in some})
        saved = now - replica
        rows.append(
            {
                "rp": rp,
                "domain": domain,
                "readers": readers,
                "deliveries": sum(r["events"] for r in some),
                "bytes_now": now,
                "bytes_replica": replica,
                "saved_bytes": saved,
                "recommended": saved >= 2**20 and saved * 2 >= now and readers >= 2,
            }
        )
    return rows


def overlaps(records: list[Record]) -> dict[tuple[str, str], tuple[int, int]]:
    """All pairs of RPs whose Jaccard index is 0.8 or more: common and either."""
    read = [
        r
        for r in records
        if r["operation"] in ("deliver", "history", "subscribe") and r["outcome"] == "ok" and r["rp"] and r["principal"]
    ]
    readers = {rp: {r["principal"] for r in some} for rp, some in by(read, lambda r: r["rp"]).items()}
    found = {}
    for a, b in combinations(sorted(rp for rp, some in readers.items() if len(some) >= 2), 2):
        common, either = len(readers[a] & readers[b]), len(readers[a] | readers[b])
        if common * 10 >= either * 8:
            found[a, b] = (common, either)
    return found


def placement_domains(advice: list[Row]) -> list[Row]:
    rows = []
    for domain, some in by(advice, lambda r: r["domain"]).items():
        advised = [r for r in some if r["recommended"]]
        sums = {"bytes_now": sum(r["bytes_now"] for r in some), "saved_bytes": sum(r["saved_bytes"] for r in advised)}
        rows.append({"domain": domain, "rps": len(some), "recommended": len(advised), **sums})
    return rows


def federation_peer_hours(records: list[Record]) -> list[Row]:
    groups = by(_asked_by_peers(records), lambda r: (r["peer"], hour_of(r)))
    return [{"peer": peer, "hour": h, **counts(some, seen=False)} for (peer, h), some in groups.items()]


def federation_failures(records: list[Record]) -> list[Row]:
    names = ("peer", "operation", "outcome", "reason", "operations", "first_seen", "last_seen")
    return [{name: row[name] for name in names} for row in refusals(_asked_by_peers(records))]


def _asked_by_peers(records: list[Record]) -> list[Record]:
    return [r for r in records if r["operation"].startswith("federation.") and r["peer"]]


def federation_peers(records: list[Record], end: datetime) -> list[Row]:
    rows = []
    for peer, some in by(_asked_by_peers(records), lambda r: r["peer"]).items():
        good = sorted((r for r in some if r["outcome"] == "ok"), key=lambda r: (r["time"], r["gateway"], r["number"]))
        gaps = [b["time"] - a["time"] for a, b in pairwise(good)]
        backlogs = []
        for place, gap in enumerate(gaps):
            if gap >= timedelta(seconds=60):
                back = good[place + 1]["time"]
                backlogs.append(
                    sum(r["bytes_in"] for r in good[place + 1 :] if r["time"] < back + timedelta(seconds=60))
                )
        rows.append(
            {
                "peer": peer,
                **counts(some),
                "silence_s_max": max(gaps).total_seconds() if gaps else None,
                "silent_s": (end - good[-1]["time"]).total_seconds() if good else None,
                "backlogs": len(backlogs),
                "backlog_bytes_max": max(backlogs, default=0),
                "p50_us": quantile(good, 500),
                "p99_us": quantile(good, 990),
            }
        )
    return rows


def last_hour(records: list[Record]) -> datetime:
    return max((hour_of(r) for r in records), default=datetime(1970, 1, 1, tzinfo=UTC))
