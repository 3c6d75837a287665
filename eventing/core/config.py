"""Typed definition of every setting of Herald.

All settings are environment variables `HERALD_*`. The reader is pure: the mapping is an argument, so tests and tools
read settings without touching the process environment. `herald doctor` prints this table with the origin of each value.
A malformed or contradictory setting refuses the start with a sentence that names the setting; an unknown name is
ignored here and reported by `herald doctor`.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from eventing.core.algorithms import parse_algorithms
from eventing.core.brokers import broker_address
from eventing.core.client_address import parse_networks
from eventing.core.data_plane import CLUSTER, SHARDS, data_plane_address
from eventing.core.errors import ConfigError, InvalidRequest
from eventing.core.events.ack_level import REPLICAS_MAX, Ack
from eventing.core.modes import MODES
from eventing.core.names import DOMAIN_PATTERN, ZONE_PATTERN
from eventing.core.object_stores import check_place
from eventing.core.roles import parse_role_mapping

NEAR_MIN = 0.8  # ratio of difflib from which a name counts as a misspelling of another
NAME_CHARS_SHOWN = 100  # characters of an unknown setting's name that a message repeats
SOCKET_PATH_BYTES_MAX = 100
"""Longest socket path in bytes. Linux accepts 107 (sun_path, unix(7)), macOS 103."""

PROFILES = ("auto", "small", "standard")
SMALL_DEFAULTS: Mapping[str, Any] = {"workers": 0, "forwarders": 4, "records_segment_s": 600}
"""Defaults of the profile `small` where they differ: no worker, few threads, and Parquet made every ten minutes, because
making it takes half a second of a core.
"""


def _setting(
    default: Any, unit: str, about: str, *, low: int | None = None, high: int | None = None, secret: bool = False
) -> Any:
    return field(default=default, metadata={"unit": unit, "about": about, "low": low, "high": high, "secret": secret})


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings. The field `redis_url` is read from `HERALD_REDIS_URL`, and so on."""

    domain: str = _setting(
        "localhost",
        "name",
        "Name of the trust domain; part of every token and every RP name. Must not change after the first start.",
    )
    host: str = _setting(
        "127.0.0.1",
        "address",
        "Address on which the gateway listens. 0.0.0.0 exposes the gateway to the network: put a TLS proxy in front.",
    )
    port: int = _setting(8000, "port", "TCP port of the gateway.", low=1, high=65535)
    public_url: str = _setting(
        "", "URL", "Address under which clients reach this domain, if a proxy stands in front. Empty: http://HOST:PORT."
    )
    data_dir: str = _setting(
        "var", "folder", "Folder of the database, Redis files, secrets and logs of an embedded domain."
    )
    redis_url: str = _setting(
        "",
        "URL",
        "Data plane to use instead of the embedded Redis: redis://, rediss://, unix:// for one server (Redis 6.2 or newer); redis+sentinel://HOST,HOST/MASTER, redis+shards://HOST,HOST or redis+cluster://HOST,HOST for several (docs/several-hosts.md).",
        secret=True,
    )
    redis_replicas: int = _setting(
        0,
        "replicas",
        "Replicas that the Redis of HERALD_REDIS_URL is to have. replicated:all is refused while fewer are connected; without it, one that is away is not missed.",
        low=0,
        high=REPLICAS_MAX,
    )
    ack_default: str = _setting(
        "stored",
        "level",
        "Acknowledgement level of rendezvous points that state none: accepted, stored, replicated:n or replicated:all (docs/what-survives-what.md).",
    )
    broker_url: str = _setting(
        "",
        "URL",
        "Broker of the task queues instead of the domain's Redis: redis://, rediss://, unix://, sentinel://HOST,HOST/MASTER, amqp:// or amqps://. It may lose everything; a Redis Cluster cannot be one.",
        secret=True,
    )
    database_url: str = _setting(
        "",
        "URL",
        "PostgreSQL (postgres://...), or pgbouncer in front of it, instead of SQLite in the data folder.",
        secret=True,
    )
    migration_database_url: str = _setting(
        "",
        "URL",
        "PostgreSQL itself (postgres://...), for migrations, where HERALD_DATABASE_URL names a pooler. Empty: HERALD_DATABASE_URL.",
        secret=True,
    )
    database_connections: int = _setting(
        8,
        "connections",
        "Most connections to PostgreSQL of one gateway, and of the deliverer; worker and forwarder have 2 and one for each thread. With fewer, requests wait for each other, and fail after 5 s; the server must permit the sum of all processes.",
        low=2,
        high=1000,
    )
    migrate: str = _setting(
        "auto",
        "auto or never",
        "Apply migrations of the database at the start. never: the start is refused while migrations are pending, and manage.py migrate applies them.",
    )
    spark_master: str = _setting("local[*]", "Spark master", "Spark master on which report jobs run.")
    profile: str = _setting(
        "auto",
        "auto, small or standard",
        "How the domain is laid out. small: one process for gateway, forwarder and deliverer, without a worker; what finds nothing to do "
        "waits longer; access records become Parquet in a short-lived process. Other settings keep what is stated for them. auto: small on a machine of at most 2 GiB or one core (docs/operating.md).",
    )
    gateways: int = _setting(
        1,
        "processes",
        "Gateway processes. More use more cores; each holds Redis subscriptions of its own.",
        low=1,
        high=64,
    )
    workers: int = _setting(
        1,
        "processes",
        "Celery worker processes. 0: no worker runs, and the forwarder runs the periodic tasks, for domains of little load: "
        "three processes instead of four, and a task that hangs is not ended.",
        low=0,
        high=64,
    )
    forwarders: int = _setting(
        16,
        "threads",
        "Peers to which events are forwarded at the same time. One that does not answer occupies a thread for some seconds, and one that was sent "
        "something for up to ten more, unless others wait: with fewer threads than such peers, a new task is begun for most events.",
        low=1,
        high=256,
    )
    log_level: str = _setting("info", "level", "Log level: debug, info, warning or error.")
    log_format: str = _setting(
        "text", "format", "Format of log lines: text, or json with one object per line (docs/observability.md)."
    )
    metrics_token: str = _setting(
        "",
        "text",
        "Token that admits a program to /metrics. Empty: a viewer's token admits, and a domain that only this machine can reach asks for none.",
        secret=True,
    )
    otlp_url: str = _setting(
        "",
        "URL",
        "Address to which spans are sent by OTLP over HTTP: http://HOST:4318. Empty: OTEL_EXPORTER_OTLP_ENDPOINT, otherwise no spans are made.",
        secret=True,
    )
    trace_percent: int = _setting(
        100,
        "percent",
        "Share of traces that are sampled where spans are sent; all domains sample the same traces. A smaller share costs less.",
        low=0,
        high=100,
    )
    secret_key: str = _setting(
        "",
        "text",
        "Key that signs console sessions. Empty: generated at first start and kept in the data folder.",
        secret=True,
    )
    dev: bool = _setting(False, "0 or 1", "Development: Django debug pages. Never in production.")

    console_session_s: int = _setting(
        12 * 3600,
        "seconds",
        "Idle time after which a console session ends. A longer time leaves an unattended session open for longer.",
        low=300,
        high=30 * 86_400,
    )
    oidc_issuer: str = _setting(
        "", "URL", "Issuer URL of the OpenID Connect provider for console logins. Empty: no provider."
    )
    oidc_client_id: str = _setting("", "text", "Client ID of the console at the provider.")
    oidc_client_secret: str = _setting("", "text", "Client secret of the console at the provider.", secret=True)
    oidc_client_secret_file: str = _setting(
        "", "file", "File with the client secret, instead of HERALD_OIDC_CLIENT_SECRET."
    )
    oidc_role_claim: str = _setting(
        "groups", "claim", "Claim, a string or a list of strings, whose values give console roles."
    )
    oidc_roles: str = _setting(
        "",
        "VALUE=ROLE,...",
        "Mapping of claim values to the roles viewer, operator and administrator. Users without a mapped value are refused.",
    )

    event_bytes_max: int = _setting(
        256 * 1024,
        "bytes",
        "Largest event. A larger limit raises the memory that each slow session can take.",
        low=1024,
        high=16 * 1024 * 1024,
    )
    batch_events_max: int = _setting(1000, "events", "Most events in one publish request.", low=1, high=10_000)
    batch_bytes_max: int = _setting(
        4 * 1024 * 1024, "bytes", "Largest publish request.", low=4096, high=64 * 1024 * 1024
    )
    dedup_window_s: int = _setting(
        600,
        "seconds",
        "Time during which a repeated (source, id) is recognised as a duplicate. A longer time takes more Redis memory per event.",
        low=1,
        high=86_400,
    )
    dedup_ids_max: int = _setting(
        100_000,
        "ids",
        "Most event ids remembered per rendezvous point; above this, the older half is discarded before its time.",
        low=100,
        high=10_000_000,
    )

    lease_s_max: int = _setting(
        30 * 86_400,
        "seconds",
        "Longest lease that is granted; requests for more are shortened.",
        low=60,
        high=366 * 86_400,
    )
    lease_s_default: int = _setting(
        86_400, "seconds", "Lease that is granted when a request states no duration.", low=1, high=366 * 86_400
    )
    subscription_lease_s_default: int = _setting(
        7 * 86_400,
        "seconds",
        "Lease of a durable subscription when a request states no duration; HERALD_LEASE_S_DEFAULT where that is longer, and never more than HERALD_LEASE_S_MAX.",
        low=1,
        high=366 * 86_400,
    )
    history_events_max: int = _setting(
        10_000_000, "events", "Most events of history that one rendezvous point may reserve.", low=1
    )
    history_bytes_max: int = _setting(
        1024**3, "bytes", "Most bytes of history that one rendezvous point may reserve.", low=1024
    )
    history_quota_bytes: int = _setting(
        16 * 1024**3, "bytes", "Sum of all reserved histories. Keep it below the memory of Redis.", low=1024
    )
    rps_max: int = _setting(100_000, "rendezvous points", "Most rendezvous points in the domain.", low=1)
    subscriptions_per_rp_max: int = _setting(
        10_000, "subscriptions", "Most durable subscriptions of one rendezvous point.", low=1
    )

    session_buffer_bytes: int = _setting(
        256 * 1024,
        "bytes",
        "Unsent bytes above which a session is no longer served live, but from the log.",
        low=16 * 1024,
    )
    session_subscriptions_max: int = _setting(10_000, "subscriptions", "Most subscriptions of one connection.", low=1)
    session_publishes_max: int = _setting(
        1024,
        "publishes",
        "Unanswered publishes of one connection above which no more frames are read from the connection.",
        low=1,
    )
    sessions_max: int = _setting(
        100_000,
        "connections",
        "Most WebSocket and SSE connections of one gateway process; further ones are refused with 503.",
        low=1,
    )
    tick_ms: int = _setting(
        10,
        "milliseconds",
        "Time during which frames of a busy rendezvous point are gathered. A longer time saves CPU and adds latency.",
        low=0,
        high=1000,
    )
    tick_max_ms: int = _setting(
        25,
        "milliseconds",
        "Upper bound for gathering frames where sending is expensive (many sessions). 0: never longer than the tick.",
        low=0,
        high=1000,
    )
    heartbeat_s: int = _setting(
        25,
        "seconds",
        "Interval of pings on idle connections; two unanswered pings close the connection.",
        low=1,
        high=600,
    )
    request_timeout_s: int = _setting(
        30, "seconds", "Time within which a request's headers and body must have arrived.", low=1, high=600
    )
    wait_s_max: int = _setting(60, "seconds", "Longest long-poll.", low=0, high=600)
    drain_lead_s: int = _setting(
        0,
        "seconds",
        "Time for which a gateway that is to stop goes on as before while /readyz answers 503, so that a load balancer sends it no more connections. Longer than the balancer takes to notice; 0 without one.",
        low=0,
        high=300,
    )
    drain_s: int = _setting(
        20,
        "seconds",
        "Time over which a gateway that is to stop closes its sessions evenly, where other gateways go on (docs/operating.md#restarts); few sessions take less. A shorter time makes more readers return in the same second. 0: all at once.",
        low=0,
        high=3600,
    )

    records: bool = _setting(
        True, "0 or 1", "Write access records, from which the reports are computed (docs/records.md)."
    )
    records_dir: str = _setting(
        "",
        "folder or URL",
        "Folder for access records, or an object store that all hosts of the domain share, such as s3://BUCKET/records?region=REGION (docs/records.md#in-an-object-store). Empty: `records` in the data folder.",
    )
    records_flush_s: int = _setting(
        5,
        "seconds",
        "Time after which access records are on disk; a killed gateway loses this much. A longer time saves little.",
        low=1,
        high=9,
    )
    records_segment_s: int = _setting(
        60,
        "seconds",
        "Time span of access records in one Parquet file. A longer span makes fewer files and delays reports.",
        low=1,
        high=3600,
    )
    records_waiting_max: int = _setting(
        100_000,
        "records",
        "Most access records in a gateway's memory, 0.3 KiB each; further ones are dropped and counted.",
        low=1000,
        high=10_000_000,
    )
    records_retention_days: int = _setting(400, "days", "Age at which access records are removed.", low=1, high=36_500)

    reports: str = _setting(
        "auto",
        "auto or off",
        "Compute reports from access records every hour and day, if Java and PySpark are installed. off: no reports, not even on request.",
    )
    reports_dir: str = _setting(
        "",
        "folder or URL",
        "Folder for reports, or an object store, as with HERALD_RECORDS_DIR. Empty: `reports` in the data folder. Executors of a Spark cluster must be able to reach it too.",
    )
    report_max_s: int = _setting(
        3600,
        "seconds",
        "Time after which a running report is stopped and counts as failed. A longer time lets one report delay others for longer.",
        low=5,
        high=7 * 86_400,
    )
    report_memory_mb: int = _setting(
        1024,
        "MiB",
        "Java memory of a report job; its processes may take as much again, plus 1 GiB. Long periods of busy domains need more.",
        low=512,
        high=1024**2,
    )
    report_nice: int = _setting(
        10,
        "niceness",
        "Niceness (nice(1)) of report jobs towards other processes of the machine. 0: no reduced priority.",
        low=0,
        high=19,
    )
    reports_retention_days: int = _setting(
        400,
        "days",
        "Age at which daily and requested reports are removed.",
        low=1,
        high=36_500,
    )
    reports_hourly_days: int = _setting(
        31, "days", "Age at which hourly reports are removed; there are 48 a day.", low=1, high=36_500
    )

    # Rates and quotas (docs/limits.md). Rates of the domain are divided equally among its live gateway processes.
    rate_window_s: int = _setting(
        2,
        "seconds",
        "Burst: the seconds' worth of a rate that is accepted at once. A larger value lets larger bursts through.",
        low=1,
        high=3600,
    )
    publish_events_per_s: int = _setting(
        100_000, "events per second", "Events that one principal may publish. 0: unlimited.", low=0
    )
    publish_bytes_per_s: int = _setting(
        128 * 1024**2, "bytes per second", "Bytes of events that one principal may publish. 0: unlimited.", low=0
    )
    rp_events_per_s: int = _setting(
        100_000, "events per second", "Events published at one rendezvous point by all clients. 0: unlimited.", low=0
    )
    rp_bytes_per_s: int = _setting(
        128 * 1024**2,
        "bytes per second",
        "Bytes of events published at one rendezvous point by all clients. 0: unlimited.",
        low=0,
    )
    domain_events_per_s: int = _setting(
        0, "events per second", "Events published in the domain by all clients. 0: unlimited.", low=0
    )
    domain_bytes_per_s: int = _setting(
        0, "bytes per second", "Bytes of events published in the domain by all clients. 0: unlimited.", low=0
    )
    requests_per_s: int = _setting(
        20_000,
        "requests per second",
        "Requests of one principal, or of one client address without a valid token; refused requests count too. 0: unlimited.",
        low=0,
    )
    domain_requests_per_s: int = _setting(
        0, "requests per second", "Requests to the domain by all clients. 0: unlimited.", low=0
    )
    failed_tokens_per_s: int = _setting(
        100,
        "tokens per second",
        "Tokens per client address that fail verification; above this, unknown tokens are refused unverified. 0: unlimited.",
        low=0,
    )
    accepts_per_s: int = _setting(
        5000,
        "connections per second",
        "New WebSocket and SSE connections of one gateway process; further ones are refused with 503. 0: unlimited.",
        low=0,
    )
    sessions_per_principal: int = _setting(
        50_000,
        "connections",
        "WebSocket and SSE connections of one principal. 0: unlimited.",
        low=0,
    )
    sessions_per_address: int = _setting(
        1000,
        "connections",
        "WebSocket and SSE connections without a token from one client address. 0: unlimited.",
        low=0,
    )
    rps_per_principal: int = _setting(
        10_000, "rendezvous points", "Rendezvous points of one creator, administrators excepted. 0: unlimited.", low=0
    )
    history_bytes_per_principal: int = _setting(
        8 * 1024**3,
        "bytes",
        "Sum of the histories that one creator has reserved, administrators excepted. 0: unlimited.",
        low=0,
    )
    subscriptions_per_principal: int = _setting(
        50_000, "subscriptions", "Durable subscriptions of one owner, administrators excepted. 0: unlimited.", low=0
    )
    trusted_proxies: str = _setting(
        "",
        "networks",
        "Proxies whose X-Forwarded-For header names the client, such as 10.0.0.0/8, 127.0.0.1. Empty: the header is ignored.",
    )

    audit_days: int = _setting(
        400,
        "days",
        "Retention of audit entries; older ones are removed by whole days, and each removal is an entry itself.",
        low=30,
        high=3660,
    )

    # Credentials of other issuers (docs/tokens.md)
    foreign_algorithms: str = _setting(
        "Ed25519",
        "algorithms",
        "Signature algorithms accepted from foreign issuers: some of Ed25519, ES256, RS256, separated by commas. Most OIDC providers sign with RS256.",
    )
    allow_private_issuers: bool = _setting(
        False,
        "0 or 1",
        "Fetch keys of foreign issuers from private addresses too, and over http on this machine. For tests and intranets.",
    )
    allow_private_peers: bool = _setting(
        False,
        "0 or 1",
        "Call peers at private addresses too, also to inspect them before they are peers. For intranets; where this domain's own address is loopback, other loopback addresses are called without it.",
    )
    overlay: str = _setting(
        "admitted",
        "peers, admitted or open",
        "Domains with which this one links once it has joined an overlay. peers: approved peers only. admitted: every domain of the directory; events are exchanged with those that a home admitted to the same rendezvous point, and those that a policy names may replicate. open: rules for anyone let domains of the directory replicate, too.",
    )
    overlay_callable: bool = _setting(
        True,
        "0 or 1",
        "Other domains can open connections to this one. 0, for a domain behind NAT: it publishes no address in the overlay, calls its links itself, and takes their messages from the answers.",
    )
    zone: str = _setting(
        "",
        "name",
        "Zone of this domain in the overlay, such as eu-central: domains of one zone are near to each other. At most 32 characters.",
    )
    operator: str = _setting(
        "",
        "name",
        "Who runs this domain, by its own word, such as example-hosting: domains of one operator share a risk, so that neither routes nor histories count them as independent. At most 32 characters.",
    )
    capacity: int = _setting(
        1,
        "class",
        "Capacity class that this domain states in the overlay, from 0 (a small device) to 3; its claims of load are clamped to it.",
        low=0,
        high=3,
    )
    placement: str = _setting(
        "advise",
        "off, advise or apply",
        "Planner of replicas. off: it plans nothing. advise: it proposes changes, which people approve. apply: it carries them out. A switch of the domain, set by REST or herald plan, takes precedence.",
    )
    routes: str = _setting(
        "apply",
        "off, advise or apply",
        "Planner of routes for rendezvous points with a target reliability. off: it plans nothing, and feeds follow their trees. advise: plans are computed and shown, without effect. apply: feeds are eager on the planned links. A switch of the domain, set by REST or herald plan routes, takes precedence.",
    )
    delivery_lease_s: int = _setting(
        10,
        "seconds",
        "Time for which the delivering domain of a shared subscription may be silent before another domain delivers. A shorter time takes over sooner, and more often by mistake where domains are slow.",
        low=3,
        high=300,
    )
    reader_balancing: bool = _setting(
        True,
        "0 or 1",
        "Move readers of rendezvous points with replicas to other domains while this one has more than 1.25 times its fair share of sessions, from 100 sessions on. 0: only moves that an operator or another part begins.",
    )
    push: bool = _setting(
        True,
        "0 or 1",
        "Deliver to endpoints of subscribers (webhooks), by a process of its own. 0: no such process, and subscriptions with an endpoint are refused.",
    )
    push_private: bool = _setting(
        False,
        "0 or 1",
        "Call endpoints by http, and at addresses of private networks and of this machine. Subscribers can then reach what those networks contain.",
    )
    push_ports: str = _setting(
        "443,8443", "ports", "Ports that endpoints may have: numbers and ranges, separated by commas."
    )
    push_ca_file: str = _setting(
        "", "file", "Certificates of authorities, PEM, that endpoints may have beside the public ones."
    )
    push_proxy: str = _setting(
        "",
        "URL",
        "Proxy, http://HOST:PORT, through whose tunnels endpoints are called. The proxy resolves names, and so decides which addresses are called.",
        secret=True,
    )
    push_retries_s: str = _setting(
        "",
        "seconds,...",
        "Pauses between the attempts of a delivery. Empty: 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h. After the last one the endpoint is paused.",
    )
    push_unverified_max: int = _setting(
        20,
        "endpoints",
        "Most endpoints of one principal, and of all at one host, that have not consented yet; further ones are refused.",
        low=1,
        high=10_000,
    )
    smtp_host: str = _setting(
        "", "host", "Mail server by which contact points are notified of alarms. Empty: no mail is sent."
    )
    smtp_port: int = _setting(587, "port", "Port of the mail server.", low=1, high=65535)
    smtp_security: str = _setting(
        "starttls",
        "none, starttls or tls",
        "Protection of connections to the mail server. none: also the password is sent in clear text; for a server on this machine.",
    )
    smtp_user: str = _setting("", "text", "Account at the mail server. Empty: without a login.")
    smtp_password: str = _setting("", "text", "Password at the mail server.", secret=True)
    mail_from: str = _setting("", "address", "Sender of the domain's mail, such as herald@example.org.")
    websub_signature: str = _setting(
        "sha256",
        "method",
        "Method of the signatures X-Hub-Signature of the WebSub hub: sha256, sha384 or sha512. Subscribers that know only one method reject the others.",
    )
    anonymous_sessions: bool = _setting(
        True,
        "0 or 1",
        "Allow WebSocket and SSE connections without a token where a policy admits anyone. 0: only single requests.",
    )

    @classmethod
    def from_env(cls, env: Mapping[str, str], *, small_machine: bool = False) -> Config:
        """Read all settings from `env`. Raises ConfigError naming the first bad setting.

        Args:
            small_machine: what the profile `auto` means here: small, otherwise standard.
        """
        known = {f"HERALD_{f.name.upper()}": f for f in fields(cls)}
        values: dict[str, Any] = {}
        for name, text in env.items():
            if name not in known or text == "":
                continue
            setting = known[name]
            values[setting.name] = _parse(name, text, type(setting.default), setting.metadata)
        if small_machine and values.get("profile", "auto") == "auto":
            values["profile"] = "small"
        if values.get("profile") == "small":
            values = {**SMALL_DEFAULTS, **values}
        config = cls(**values)
        config._refuse_contradictions()
        return config

    def _refuse_contradictions(self) -> None:
        if not DOMAIN_PATTERN.fullmatch(self.domain):
            raise ConfigError(
                f"HERALD_DOMAIN is {self.domain!r}; it must be a lower-case host name such as example.org."
            )
        if self.log_level not in ("debug", "info", "warning", "error"):
            raise ConfigError(f"HERALD_LOG_LEVEL is {self.log_level!r}; use debug, info, warning or error.")
        if self.overlay not in ("peers", "admitted", "open"):
            raise ConfigError(f"HERALD_OVERLAY is {self.overlay!r}; use peers, admitted or open.")
        if self.placement not in MODES:
            raise ConfigError(f"HERALD_PLACEMENT is {self.placement!r}; use off, advise or apply.")
        if self.routes not in MODES:
            raise ConfigError(f"HERALD_ROUTES is {self.routes!r}; use off, advise or apply.")
        for name, value in (("HERALD_ZONE", self.zone), ("HERALD_OPERATOR", self.operator)):
            if not ZONE_PATTERN.fullmatch(value):
                raise ConfigError(f"{name} is {value!r}; use up to 32 lower-case letters, digits, dots or hyphens.")
        if self.profile not in PROFILES:
            raise ConfigError(f"HERALD_PROFILE is {self.profile!r}; use auto, small or standard.")
        if self.reports not in ("auto", "off"):
            raise ConfigError(f"HERALD_REPORTS is {self.reports!r}; use auto or off.")
        try:
            Ack.parse(self.ack_default)
        except InvalidRequest as error:
            raise ConfigError(f"HERALD_ACK_DEFAULT is {self.ack_default!r}: {error}") from None
        if self.broker_url:
            broker_address("HERALD_BROKER_URL", self.broker_url)
        elif len((plane := data_plane_address(self.redis_url)).masters) > 1 or plane.kind in (SHARDS, CLUSTER):
            raise ConfigError(
                "HERALD_REDIS_URL names several primaries, which Celery cannot use as its broker; set HERALD_BROKER_URL to a "
                "single Redis, to Sentinels of one, or to RabbitMQ."
            )
        data_plane_address(self.redis_url)
        if self.migrate not in ("auto", "never"):
            raise ConfigError(f"HERALD_MIGRATE is {self.migrate!r}; use auto or never.")
        for name, url in (
            ("HERALD_DATABASE_URL", self.database_url),
            ("HERALD_MIGRATION_DATABASE_URL", self.migration_database_url),
        ):
            if url and not url.startswith(("postgres://", "postgresql://")):
                raise ConfigError(
                    f"{name} is no address of PostgreSQL; use one such as postgres://USER:PASSWORD@HOST/NAME."
                )
        if self.migration_database_url and not self.database_url:
            raise ConfigError(
                "HERALD_MIGRATION_DATABASE_URL has no effect without HERALD_DATABASE_URL; set both or neither."
            )
        if self.log_format not in ("text", "json"):
            raise ConfigError(f"HERALD_LOG_FORMAT is {self.log_format!r}; use text or json.")
        if self.otlp_url and not self.otlp_url.startswith(("http://", "https://")):
            raise ConfigError("HERALD_OTLP_URL is not an http or https address; use one such as http://127.0.0.1:4318.")
        if self.metrics_token and len(self.metrics_token) < 32:
            raise ConfigError(
                "HERALD_METRICS_TOKEN is shorter than 32 characters; use a long random one, or leave it empty."
            )
        if self.secret_key and len(self.secret_key) < 32:
            raise ConfigError(
                "HERALD_SECRET_KEY is shorter than 32 characters; use a long random one, or leave it empty."
            )
        if self.batch_bytes_max < self.event_bytes_max:
            raise ConfigError(
                "HERALD_BATCH_BYTES_MAX is below HERALD_EVENT_BYTES_MAX; a request must hold at least one event."
            )
        if self.oidc_issuer and not (self.oidc_client_id and (self.oidc_client_secret or self.oidc_client_secret_file)):
            raise ConfigError(
                "HERALD_OIDC_ISSUER needs HERALD_OIDC_CLIENT_ID, and HERALD_OIDC_CLIENT_SECRET or HERALD_OIDC_CLIENT_SECRET_FILE."
            )
        parse_role_mapping(self.oidc_roles)
        parse_algorithms(self.foreign_algorithms)
        if self.lease_s_default > self.lease_s_max:
            raise ConfigError("HERALD_LEASE_S_DEFAULT is above HERALD_LEASE_S_MAX.")
        parse_networks(self.trusted_proxies)
        if self.push_proxy and not self.push_proxy.startswith("http://"):
            raise ConfigError(
                "HERALD_PUSH_PROXY is not an http address; use one such as http://proxy.example.org:3128."
            )
        if self.smtp_security not in ("none", "starttls", "tls"):
            raise ConfigError("HERALD_SMTP_SECURITY is none, starttls or tls.")
        if self.smtp_host and not re.fullmatch(r"[^@\s<>]{1,64}@[^@\s<>]{1,190}", self.mail_from):
            raise ConfigError("HERALD_SMTP_HOST needs HERALD_MAIL_FROM, an address such as herald@example.org.")
        if bool(self.smtp_user) != bool(self.smtp_password):
            raise ConfigError("HERALD_SMTP_USER and HERALD_SMTP_PASSWORD are stated both, or neither.")
        for name, place in (("HERALD_RECORDS_DIR", self.records_dir), ("HERALD_REPORTS_DIR", self.reports_dir)):
            check_place(name, place)
        if self.websub_signature not in ("sha256", "sha384", "sha512"):
            raise ConfigError("HERALD_WEBSUB_SIGNATURE is sha256, sha384 or sha512.")
        if not re.fullmatch(r"[0-9]{1,5}(?:-[0-9]{1,5})?(?:,[0-9]{1,5}(?:-[0-9]{1,5})?){0,99}", self.push_ports):
            raise ConfigError("HERALD_PUSH_PORTS is not a list of ports; use one such as 443,8443,9000-9100.")
        if not re.fullmatch(
            r"(?:[0-9]{1,6}(?:\.[0-9]{1,3})?(?:,[0-9]{1,6}(?:\.[0-9]{1,3})?){0,19})?", self.push_retries_s
        ):
            raise ConfigError("HERALD_PUSH_RETRIES_S is not a list of seconds; use one such as 5,300,1800.")

    @property
    def is_small(self) -> bool:
        """True in the profile `small`; `auto` that was not resolved to it is the profile `standard`."""
        return self.profile == "small"

    @property
    def is_one_process(self) -> bool:
        """True if gateway, forwarder and deliverer are one process: in the profile `small`, unless further processes are asked for."""
        return self.is_small and self.gateways == 1 and self.workers == 0

    @property
    def data_path(self) -> Path:
        """Data folder, as an absolute path."""
        return Path(self.data_dir).resolve()

    @property
    def records_path(self) -> Path:
        """Local folder of the access records, as an absolute path: of all of them, or of those on their way to an object store."""
        local = self.records_dir and not self.records_url
        return Path(self.records_dir).resolve() if local else self.data_path / "records"

    @property
    def records_url(self) -> str:
        """URL of the object store that has the access records; empty if a folder has them."""
        return self.records_dir if "://" in self.records_dir else ""

    @property
    def records_place(self) -> str:
        """Place of the access records: an absolute path, or the URL of an object store."""
        return self.records_url or str(self.records_path)

    @property
    def reports_place(self) -> str:
        """Place of the reports: an absolute path, or the URL of an object store."""
        if "://" in self.reports_dir:
            return self.reports_dir
        return str(Path(self.reports_dir).resolve() if self.reports_dir else self.data_path / "reports")

    @property
    def base_url(self) -> str:
        """Address under which clients reach this domain, without a trailing slash."""
        if self.public_url:
            return self.public_url.rstrip("/")
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host  # noqa: S104 - compared, not bound
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def redis_socket(self) -> Path:
        """Unix socket of the embedded Redis server: in the data folder, or below /tmp if that path is too long."""
        path = self.data_path / "redis.sock"
        if len(os.fsencode(path)) <= SOCKET_PATH_BYTES_MAX:
            return path
        return Path("/tmp") / f"herald-{hashlib.sha256(os.fsencode(path)).hexdigest()[:16]}" / "redis.sock"  # noqa: S108

    @property
    def subscription_lease_s(self) -> int:
        """Default lease of a durable subscription, in seconds."""
        return min(max(self.subscription_lease_s_default, self.lease_s_default), self.lease_s_max)

    @property
    def effective_redis_url(self) -> str:
        """URL of the Redis in use: the configured one, else the embedded server's socket."""
        return self.redis_url or f"unix://{self.redis_socket}"

    @property
    def fenced(self) -> bool:
        """True if another Redis server may take the place of the present one. The embedded one has no replicas, and restarts
        from its own file."""
        return bool(self.redis_url)


def unknown_settings(env: Mapping[str, str]) -> list[str]:
    """List names in `env` that look like settings but are not, likely misspelled; those of the client are left out."""
    known = {
        *_names(),
        "HERALD_TOKEN",
        "HERALD_URL",
        "HERALD_HOME",
        "HERALD_PROFILE",
        "HERALD_TRACEBACK",
        "HERALD_PROCESS",
    }
    return sorted(name for name in env if name.startswith("HERALD_") and name not in known)


def unknown_setting(name: str) -> str:
    """Compose the operator's message about one of `unknown_settings`, with the setting that may be meant."""
    near = get_close_matches(name, _names(), n=1, cutoff=NEAR_MIN)
    meant = f" Did you mean {near[0]}?" if near else ""
    return f"{name[:NAME_CHARS_SHOWN]} is no setting of Herald and has no effect.{meant}"


def _names() -> list[str]:
    return [f"HERALD_{f.name.upper()}" for f in fields(Config)]


def _parse(name: str, text: str, kind: type, metadata: Mapping[str, Any]) -> Any:
    if kind is bool:
        if text.lower() in ("1", "true", "yes", "on"):
            return True
        if text.lower() in ("0", "false", "no", "off"):
            return False
        raise ConfigError(f"{name} is {text!r}; use 1 or 0.")
    if kind is int:
        try:
            number = int(text)
        except ValueError:
            raise ConfigError(f"{name} is {text!r}; it must be a whole number of {metadata['unit']}.") from None
        low, high = metadata["low"], metadata["high"]
        if (low is not None and number < low) or (high is not None and number > high):
            raise ConfigError(f"{name} is {number}; it must be {_range(low, high)} {metadata['unit']}.")
        return number
    return text


def _range(low: int | None, high: int | None) -> str:
    if high is None:
        return f"at least {low}"
    return f"from {low} to {high}" if low is not None else f"at most {high}"
