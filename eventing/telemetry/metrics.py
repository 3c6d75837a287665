"""Every metric of Herald, declared once: name, meaning, labels. docs/observability.md lists them.

Names follow Prometheus' conventions: base units in the name, `_total` for what only grows. Labels are bounded: processes,
tasks, codes and check names are ours, peers are told apart up to PEERS_MAX. No rendezvous point and no principal is ever
a label: those are for the console and the reports.

A gauge says how the processes' values are joined: `livesum` adds up, `livemax` takes the largest, `livemostrecent` the
newest; all of them forget processes that ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, values

from eventing.telemetry import folder
from eventing.telemetry.totals import BOUNDS_S, Durations

PEERS_MAX = 200
"""Peers that a process tells apart in labels; those that come later are `other`. Each costs some ten series."""

OTHER = "other"
TASK_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 60.0)
"""Upper bounds of tasks and requests between domains, seconds: a task is killed after 60 s."""

Joined = Literal["livesum", "livemax", "livemostrecent"]

REGISTRY = CollectorRegistry()
if folder.folder_in_use() is not None:
    _per_process: Any = values.MultiProcessValue  # not typed
    values.ValueClass = _per_process(folder.identity)


def _counter(name: str, about: str, labels: Sequence[str] = ()) -> Counter:
    return Counter(name, about, labels, registry=REGISTRY)


def _gauge(name: str, about: str, labels: Sequence[str] = (), joined: Joined = "livesum") -> Gauge:
    return Gauge(name, about, labels, registry=REGISTRY, multiprocess_mode=joined)


def _histogram(name: str, about: str, labels: Sequence[str] = (), bounds_s: Sequence[float] = BOUNDS_S) -> Histogram:
    return Histogram(name, about, labels, registry=REGISTRY, buckets=bounds_s)


# Events
PUBLISHES = _counter("herald_publishes_total", "Publishes that succeeded, each of one event or a batch.")
FAST_PATH = _counter("herald_publish_fast_path_total", "Publishes over HTTP that took the fast path.")
FAST_PATH_DECLINED = _counter(
    "herald_publish_fast_path_declined_total",
    "Publishes over HTTP that the fast path left to the ordinary path, by the reason.",
    ("reason",),
)
EVENTS_PUBLISHED = _counter("herald_events_published_total", "Events that publishers brought and that are in the log.")
EVENTS_REPEATED = _counter(
    "herald_events_repeated_total", "Events that publishers brought again: the log had them already."
)
PUBLISHED_BYTES = _counter("herald_published_bytes_total", "Bytes of the events that publishers brought.")
APPENDS = _histogram(
    "herald_append_duration_seconds", "Round trips of appends to Redis, of all that had gathered at once."
)
EVENTS_DELIVERED = _counter("herald_events_delivered_total", "Events given to readers: one per event and reader.")
DELIVERED_BYTES = _counter("herald_delivered_bytes_total", "Bytes of the events given to readers.")
DELIVERY_LAG = _histogram(
    "herald_delivery_lag_seconds",
    "From the storing of an event to its being written to live readers; some flushes each second are looked at.",
)
GAPS = _counter("herald_gaps_total", "Gaps that readers were told: events that had left the history before they came.")
REFUSALS = _counter(
    "herald_refusals_total", "Requests and operations that were refused, by the problem's code.", ("reason",)
)

# Connections
SESSIONS = _gauge("herald_sessions", "WebSocket and SSE connections.")
SESSIONS_OPENED = _counter("herald_sessions_opened_total", "WebSocket and SSE connections that began.")
SESSIONS_CLOSED = _counter("herald_sessions_closed_total", "WebSocket and SSE connections that ended.")
READINGS = _gauge("herald_readings", "Readings of a rendezvous point by a connection.")
READINGS_BEGUN = _counter("herald_readings_begun_total", "Readings of a rendezvous point that began.")
CHANNELS = _gauge("herald_channels", "Rendezvous points that gateway processes follow: one each per process.")
DESCRIPTORS = _gauge("herald_descriptors_cached", "Descriptors of rendezvous points that gateway processes know.")
DESCRIPTOR_READS = _counter(
    "herald_descriptor_reads_total", "Descriptors that were read from SQL, not known or too old."
)
LOOP_LAG = _histogram(
    "herald_event_loop_lag_seconds", "How much later than asked for a gateway's event loop came back; once a second."
)
REDIS_FAILURES = _counter("herald_redis_call_failures_total", "Calls to Redis that got no answer, tries included.")
READY = _gauge(
    "herald_ready",
    "What /readyz said of each part when it was last asked: 1 ready, 0 not.",
    ("check",),
    "livemostrecent",
)

# Between domains
PEERS = _gauge("herald_peers", "Other domains, by their state.", ("state",), "livemostrecent")
FORWARDED = _counter(
    "herald_forwarded_events_total", "Events that the peer was sent, in requests that it took.", ("peer",)
)
FORWARD_REQUESTS = _counter(
    "herald_forward_requests_total", "Requests to the peer: ok, or the class of the failure.", ("peer", "outcome")
)
FORWARD_DURATION = _histogram(
    "herald_forward_request_duration_seconds", "Requests to peers, until their answer.", bounds_s=TASK_BOUNDS_S
)
FORWARD_IN_FLIGHT = _gauge(
    "herald_forward_in_flight_seconds",
    "Since when a request to the peer has been under way; 0: none is.",
    ("peer",),
    "livemax",
)
BACKLOG = _gauge("herald_forward_backlog_events", "Events that wait for the peer.", ("peer",), "livemostrecent")
BACKLOG_AGE = _gauge(
    "herald_forward_backlog_age_seconds", "Since when some have been waiting for the peer.", ("peer",), "livemostrecent"
)
FAILURES = _gauge(
    "herald_forward_failures",
    "Failures of forwarding to the peer, in a row; 0: all is well.",
    ("peer",),
    "livemostrecent",
)
RECEIVED = _counter("herald_received_events_total", "Events that the peer brought and that were new here.", ("peer",))
REDUNDANT = _counter(
    "herald_received_redundant_events_total", "Events that the peer brought and that were here.", ("peer",)
)
RECEIVED_RUNS = _counter("herald_received_runs_total", "Sealed runs of events that the peer brought.", ("peer",))
PEER_REQUESTS = _counter(
    "herald_peer_requests_total", "Requests of other domains: ok, or the code of the refusal.", ("peer", "outcome")
)
SEALS = _counter("herald_seals_total", "Runs of own events that were sealed.")

# The domain, as SQL has it
MEASURED = _gauge(
    "herald_domain_measured_timestamp_seconds", "When the following were last read.", (), "livemostrecent"
)
RPS = _gauge("herald_rendezvous_points", "Rendezvous points, replicas of others' among them.", (), "livemostrecent")
RPS_LIMIT = _gauge("herald_rendezvous_points_limit", "Most that there may be.", (), "livemostrecent")
HISTORY = _gauge("herald_history_reserved_bytes", "History that rendezvous points have reserved.", (), "livemostrecent")
HISTORY_LIMIT = _gauge("herald_history_reserved_limit_bytes", "Most that may be reserved.", (), "livemostrecent")
SUBSCRIPTIONS = _gauge("herald_subscriptions", "Durable subscriptions.", (), "livemostrecent")
OUTBOX = _gauge("herald_outbox_entries", "Effects of changes that wait to be carried out.", (), "livemostrecent")
OUTBOX_AGE = _gauge("herald_outbox_age_seconds", "Since when the oldest of these has waited.", (), "livemostrecent")
LEASES_REAPED = _counter("herald_leases_reaped_total", "Rendezvous points and subscriptions whose lease ended.")

# Durable subscriptions, as the gateway that looks for loss has found them when it had last gone round all of them
SUBSCRIPTIONS_LOSING = _gauge(
    "herald_subscriptions_losing",
    "Durable subscriptions of whose unread events some have left the history.",
    (),
    "livemostrecent",
)
SUBSCRIPTIONS_LOST = _gauge(
    "herald_subscriptions_lost_events",
    "Events that are lost to these, and not yet reported to them.",
    (),
    "livemostrecent",
)
SUBSCRIPTIONS_LAG_MAX = _gauge(
    "herald_subscriptions_lag_events_max",
    "Events that the durable subscription furthest behind has not acknowledged, lost ones among them.",
    (),
    "livemostrecent",
)

# Processes
TASKS = _counter("herald_tasks_total", "Celery tasks that ended: ok or failed.", ("task", "outcome"))
TASK_DURATION = _histogram("herald_task_duration_seconds", "Celery tasks.", ("task",), TASK_BOUNDS_S)
CPU = _counter("process_cpu_seconds_total", "User and system CPU time.", ("process",))
MEMORY = _gauge("process_resident_memory_bytes", "Resident memory.", ("process",))
FILES = _gauge("process_open_fds", "Open file descriptors.", ("process",))
STARTED = _gauge("process_start_time_seconds", "When the process started, Unix seconds.", ("process",), "livemax")
BUILD_INFO = _gauge("herald_build_info", "Always 1; what runs here.", ("version", "python", "domain"), "livemax")

_peers: set[str] = set()


def peer_label(peer: str) -> str:
    """The label of a peer; `other` for those beyond PEERS_MAX."""
    if peer in _peers:
        return peer
    if len(_peers) >= PEERS_MAX:
        return OTHER
    _peers.add(peer)
    return peer


def add_durations(histogram: Histogram, now: Durations, before: Durations) -> None:
    """Add to `histogram`, whose buckets are BOUNDS_S, what was observed since `before`, and make `before` equal to `now`."""
    for at, (count, counted) in enumerate(zip(now.counts, before.counts, strict=True)):
        if count != counted:
            histogram._buckets[at].inc(count - counted)
            before.counts[at] = count
    if now.sum_s != before.sum_s:
        histogram._sum.inc(now.sum_s - before.sum_s)
        before.sum_s = now.sum_s
