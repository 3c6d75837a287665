"""Declarations of all metrics: name, meaning, labels. docs/observability.md lists them.

Names follow Prometheus' conventions: base units in the name, `_total` for values that only grow. Labels are bounded:
processes, tasks, codes and check names are fixed sets, peers are distinguished up to PEERS_MAX. No rendezvous point and
no principal is ever a label: those are in the console and the reports.

A gauge states how the processes' values are joined: `livesum` adds them, `livemax` takes the largest, `livemostrecent`
the newest; all of them drop processes that ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, values

from eventing.core.container import per_process
from eventing.telemetry import folder
from eventing.telemetry.totals import BOUNDS_S, Durations

PEERS_MAX = 200  # bound: peers with labels of their own; the label `other`
"""Peers distinguished by label in a process; later ones are `other`. Each costs some ten series."""

OTHER = "other"
TASK_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 60.0)
"""Upper bounds of buckets for tasks and requests between domains, in seconds: a task is killed after 60 s."""

Joined = Literal["livesum", "livemax", "livemostrecent"]

REGISTRY = CollectorRegistry()
if folder.folder_in_use() is not None:
    _per_process: Any = values.MultiProcessValue  # untyped
    values.ValueClass = _per_process(folder.identity)


def _counter(name: str, about: str, labels: Sequence[str] = ()) -> Counter:
    return Counter(name, about, labels, registry=REGISTRY)


def _gauge(name: str, about: str, labels: Sequence[str] = (), joined: Joined = "livesum") -> Gauge:
    return Gauge(name, about, labels, registry=REGISTRY, multiprocess_mode=joined)


def _histogram(name: str, about: str, labels: Sequence[str] = (), bounds_s: Sequence[float] = BOUNDS_S) -> Histogram:
    return Histogram(name, about, labels, registry=REGISTRY, buckets=bounds_s)


# Events
PUBLISHES = _counter("herald_publishes_total", "Publishes that succeeded, each of one event or a batch.")
FAST_PATH = _counter("herald_publish_fast_path_total", "Publishes over HTTP on the fast path.")
FAST_PATH_DECLINED = _counter(
    "herald_publish_fast_path_declined_total",
    "Publishes over HTTP that the fast path passed to the ordinary path, by reason.",
    ("reason",),
)
EVENTS_PUBLISHED = _counter("herald_events_published_total", "Events from publishers that were appended to the log.")
EVENTS_REPEATED = _counter("herald_events_repeated_total", "Repeated events from publishers that the log already held.")
PUBLISHED_BYTES = _counter("herald_published_bytes_total", "Bytes of the events from publishers.")
APPENDS = _histogram("herald_append_duration_seconds", "Durations of the pipelines of appends to Redis.")
EVENTS_DELIVERED = _counter("herald_events_delivered_total", "Events delivered to readers: one per event and reader.")
DELIVERED_BYTES = _counter("herald_delivered_bytes_total", "Bytes of the events delivered to readers.")
DELIVERY_LAG = _histogram(
    "herald_delivery_lag_seconds",
    "Time from the storing of an event to its writing to live readers, sampled from some flushes each second.",
)
GAPS = _counter(
    "herald_gaps_total", "Gaps reported to readers: events that had left the history before their delivery."
)
REFUSALS = _counter(
    "herald_refusals_total", "Requests and operations that were refused, by code of the problem.", ("reason",)
)

# Connections
SESSIONS = _gauge("herald_sessions", "WebSocket and SSE connections.")
SESSIONS_OPENED = _counter("herald_sessions_opened_total", "WebSocket and SSE connections that began.")
SESSIONS_CLOSED = _counter("herald_sessions_closed_total", "WebSocket and SSE connections that ended.")
READINGS = _gauge("herald_readings", "Readings of a rendezvous point by a connection.")
READINGS_BEGUN = _counter("herald_readings_begun_total", "Readings of a rendezvous point that began.")
CHANNELS = _gauge("herald_channels", "Rendezvous points that gateway processes follow: one each per process.")
DESCRIPTORS = _gauge("herald_descriptors_cached", "Descriptors of rendezvous points cached by gateway processes.")
DESCRIPTOR_READS = _counter(
    "herald_descriptor_reads_total", "Descriptors read from SQL because they were missing in the cache or too old."
)
LOOP_LAG = _histogram("herald_event_loop_lag_seconds", "Delay of a gateway's event loop, measured once a second.")
REDIS_FAILURES = _counter("herald_redis_call_failures_total", "Tries of calls to Redis that received no answer.")
READY = _gauge(
    "herald_ready",
    "Parts reported by the last /readyz: 1 ready, 0 not ready.",
    ("check",),
    "livemostrecent",
)

# Between domains
PEERS = _gauge("herald_peers", "Other domains, by their state.", ("state",), "livemostrecent")
PUSHED = _counter("herald_pushed_events_total", "Events that endpoints of subscribers accepted.")
PUSH_ATTEMPTS = _counter(
    "herald_push_attempts_total", "Requests to endpoints of subscribers, by verdict.", ("verdict",)
)
PUSH_GIVEN_UP = _counter("herald_push_given_up_events_total", "Events that became dead letters.")
HUB_REQUESTS = _counter(
    "herald_websub_requests_total",
    "Requests to the WebSub hub that were settled, by mode and outcome.",
    ("mode", "outcome"),
)
PUSH_DURATION = _histogram(
    "herald_push_attempt_duration_seconds",
    "Durations of requests to endpoints of subscribers until their verdict.",
    bounds_s=TASK_BOUNDS_S,
)
PUSH_IN_FLIGHT = _gauge(
    "herald_push_in_flight",
    "Requests in flight to endpoints of subscribers, by kind of place.",
    ("kind",),
    joined="livemostrecent",
)
PUSH_WAITING = _gauge("herald_push_waiting", "Subscriptions that wait for a place to send.", joined="livemostrecent")
PUSH_BACKLOG = _gauge(
    "herald_push_backlog_events",
    "Events that endpoints have not accepted yet: one per event and subscription.",
    joined="livemostrecent",
)
PUSH_BACKLOG_AGE = _gauge(
    "herald_push_backlog_age_seconds",
    "Time since the storing of the oldest event that an endpoint has not accepted yet.",
    joined="livemostrecent",
)
PUSH_ENDPOINTS = _gauge(
    "herald_push_endpoints", "Endpoints of subscribers by state.", ("state",), joined="livemostrecent"
)
FORWARDED = _counter(
    "herald_forwarded_events_total", "Events sent to the peer in requests that it accepted.", ("peer",)
)
FORWARD_REQUESTS = _counter(
    "herald_forward_requests_total", "Requests to the peer: ok, or the class of the failure.", ("peer", "outcome")
)
FORWARD_DURATION = _histogram(
    "herald_forward_request_duration_seconds",
    "Durations of requests to peers until their answer.",
    bounds_s=TASK_BOUNDS_S,
)
FORWARD_IN_FLIGHT = _gauge(
    "herald_forward_in_flight_seconds",
    "Start of the present request to the peer; 0: no request.",
    ("peer",),
    "livemax",
)
BACKLOG = _gauge("herald_forward_backlog_events", "Events waiting to be sent to the peer.", ("peer",), "livemostrecent")
BACKLOG_AGE = _gauge(
    "herald_forward_backlog_age_seconds",
    "Time since which events have been waiting for the peer.",
    ("peer",),
    "livemostrecent",
)
FAILURES = _gauge(
    "herald_forward_failures",
    "Consecutive failures of forwarding to the peer; 0: none.",
    ("peer",),
    "livemostrecent",
)
RECEIVED = _counter("herald_received_events_total", "Events received from the peer that were new here.", ("peer",))
REDUNDANT = _counter(
    "herald_received_redundant_events_total", "Events received from the peer that were already held here.", ("peer",)
)
RECEIVED_RUNS = _counter("herald_received_runs_total", "Sealed runs of events received from the peer.", ("peer",))
PEER_REQUESTS = _counter(
    "herald_peer_requests_total", "Requests from other domains: ok, or the code of the refusal.", ("peer", "outcome")
)
SEALS = _counter("herald_seals_total", "Runs of own events that were sealed.")

# State of the domain in SQL
MEASURED = _gauge(
    "herald_domain_measured_timestamp_seconds",
    "Time of the last reading of the following metrics.",
    (),
    "livemostrecent",
)
RPS = _gauge(
    "herald_rendezvous_points", "Rendezvous points, including replicas of other domains'.", (), "livemostrecent"
)
RPS_LIMIT = _gauge("herald_rendezvous_points_limit", "Maximum number of rendezvous points.", (), "livemostrecent")
HISTORY = _gauge("herald_history_reserved_bytes", "History reserved by rendezvous points.", (), "livemostrecent")
HISTORY_LIMIT = _gauge(
    "herald_history_reserved_limit_bytes", "Maximum of history that may be reserved.", (), "livemostrecent"
)
SUBSCRIPTIONS = _gauge("herald_subscriptions", "Durable subscriptions.", (), "livemostrecent")
OUTBOX = _gauge("herald_outbox_entries", "Pending effects of changes on the data plane.", (), "livemostrecent")
OUTBOX_AGE = _gauge(
    "herald_outbox_age_seconds", "Time since which the oldest of these effects has been pending.", (), "livemostrecent"
)
TARGETS = _gauge(
    "herald_reliability_rps",
    "Rendezvous points with a target reliability, by state: met, missed, unknown.",
    ("state",),
    "livemostrecent",
)
LEASES_REAPED = _counter(
    "herald_leases_reaped_total",
    "Rendezvous points and subscriptions whose lease has ended and that are not yet removed.",
)

# Durable subscriptions, as of the last complete round of the gateway that looks for loss
SUBSCRIPTIONS_LOSING = _gauge(
    "herald_subscriptions_losing",
    "Durable subscriptions with unread events that have left the history.",
    (),
    "livemostrecent",
)
SUBSCRIPTIONS_LOST = _gauge(
    "herald_subscriptions_lost_events",
    "Lost events of these subscriptions that have not been reported to them.",
    (),
    "livemostrecent",
)
SUBSCRIPTIONS_LAG_MAX = _gauge(
    "herald_subscriptions_lag_events_max",
    "Unacknowledged events of the durable subscription with the greatest lag, including lost ones.",
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
BUILD_INFO = _gauge(
    "herald_build_info",
    "Always 1; the labels state the version and the process.",
    ("version", "python", "domain"),
    "livemax",
)


@per_process
def _peers() -> set[str]:
    """Peers with labels of their own."""
    return set()


def peer_label(peer: str) -> str:
    """Return the label of a peer; `other` for peers beyond PEERS_MAX."""
    labelled = _peers()
    if peer in labelled:
        return peer
    if len(labelled) >= PEERS_MAX:
        return OTHER
    labelled.add(peer)
    return peer


def add_durations(histogram: Histogram, now: Durations, before: Durations) -> None:
    """Add the observations since `before` to `histogram`, whose buckets are BOUNDS_S, and make `before` equal to `now`."""
    for at, (count, counted) in enumerate(zip(now.counts, before.counts, strict=True)):
        if count != counted:
            histogram._buckets[at].inc(count - counted)
            before.counts[at] = count
    if now.sum_s != before.sum_s:
        histogram._sum.inc(now.sum_s - before.sum_s)
        before.sum_s = now.sum_s
