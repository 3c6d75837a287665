"""Every setting of Herald, in one typed place.

All settings come from the environment as `HERALD_*`. This reader is pure: the mapping is passed in, so tests and tools
read settings without touching the process environment. `herald doctor` prints this table with the origin of each value.
Starting with a malformed or contradictory setting is refused with a sentence that names it; a name that is not ours is
ignored here and pointed out by `herald doctor`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from eventing.core.algorithms import parse_algorithms
from eventing.core.client_address import parse_networks
from eventing.core.errors import ConfigError
from eventing.core.names import DOMAIN_PATTERN
from eventing.core.roles import parse_role_mapping

NEAR_MIN = 0.8  # of difflib's ratio, for a name to be taken for a misspelling of another
NAME_CHARS_SHOWN = 100  # of a name that is no setting
SOCKET_PATH_BYTES_MAX = 100
"""The kernel takes 107 bytes (sun_path, unix(7)), macOS 103."""


def _setting(
    default: Any, unit: str, about: str, *, low: int | None = None, high: int | None = None, secret: bool = False
) -> Any:
    return field(default=default, metadata={"unit": unit, "about": about, "low": low, "high": high, "secret": secret})


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings; the field `redis_url` is read from `HERALD_REDIS_URL`, and so on."""

    domain: str = _setting(
        "localhost", "name", "The trust domain's name; part of every token and name. Never change it later."
    )
    host: str = _setting(
        "127.0.0.1", "address", "Where the gateway listens. 0.0.0.0 opens it to the network: put TLS in front."
    )
    port: int = _setting(8000, "port", "TCP port of the gateway.", low=1, high=65535)
    public_url: str = _setting(
        "", "URL", "How clients reach this domain, when a proxy stands before it. Empty: http://HOST:PORT."
    )
    data_dir: str = _setting("var", "folder", "Database, Redis files, secrets and logs of an embedded domain.")
    redis_url: str = _setting("", "URL", "A Redis >= 6.2 to use instead of the embedded one.", secret=True)
    database_url: str = _setting(
        "", "URL", "PostgreSQL (postgres://...) instead of SQLite in the data folder.", secret=True
    )
    spark_master: str = _setting("local[*]", "Spark master", "Where report jobs run.")
    gateways: int = _setting(
        1,
        "processes",
        "Gateway processes. More use more cores; each holds its own Redis subscriptions.",
        low=1,
        high=64,
    )
    workers: int = _setting(1, "processes", "Celery worker processes.", low=1, high=64)
    forwarders: int = _setting(
        8,
        "threads",
        "Peers that are forwarded to at the same time. One that hangs holds a thread for some seconds, then waits its turn.",
        low=1,
        high=256,
    )
    log_level: str = _setting("info", "level", "debug, info, warning or error.")
    log_format: str = _setting(
        "text", "format", "Of log lines: text, or json, one object per line (docs/observability.md)."
    )
    metrics_token: str = _setting(
        "",
        "text",
        "Lets a program read /metrics. Empty: a viewer's token does, and on a domain of this machine alone none is needed.",
        secret=True,
    )
    otlp_url: str = _setting(
        "",
        "URL",
        "Where spans are sent, by OTLP over HTTP: http://HOST:4318. Empty: OTEL_EXPORTER_OTLP_ENDPOINT, else none are made.",
        secret=True,
    )
    trace_percent: int = _setting(
        100,
        "percent",
        "How many traces are kept where spans are sent; the same ones in all domains. Fewer cost less.",
        low=0,
        high=100,
    )
    secret_key: str = _setting(
        "", "text", "Signs console sessions. Empty: made at first start and kept in the data folder.", secret=True
    )
    dev: bool = _setting(False, "0 or 1", "Development: Django debug pages. Never in production.")

    console_session_s: int = _setting(
        12 * 3600,
        "seconds",
        "A console session that nobody uses ends after this. Longer leaves more time to who finds a laptop open.",
        low=300,
        high=30 * 86_400,
    )
    oidc_issuer: str = _setting(
        "", "URL", "OpenID Connect provider for console logins, by its issuer URL. Empty: none."
    )
    oidc_client_id: str = _setting("", "text", "What the provider calls this console.")
    oidc_client_secret: str = _setting("", "text", "The console's secret at the provider.", secret=True)
    oidc_client_secret_file: str = _setting("", "file", "A file that holds the secret, instead of the setting itself.")
    oidc_role_claim: str = _setting("groups", "claim", "The claim, a text or a list, whose values give console roles.")
    oidc_roles: str = _setting(
        "",
        "VALUE=ROLE,...",
        "Which value of the claim gives which role: viewer, operator, administrator. Nobody else gets in.",
    )

    event_bytes_max: int = _setting(
        256 * 1024,
        "bytes",
        "Largest event. Raising it raises the memory of every slow session.",
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
        "How long a repeated (source, id) is recognised. Raising it costs Redis memory per event.",
        low=1,
        high=86_400,
    )
    dedup_ids_max: int = _setting(
        100_000,
        "ids",
        "Most ids remembered per rendezvous point; beyond it the oldest half is forgotten early.",
        low=100,
        high=10_000_000,
    )

    lease_s_max: int = _setting(
        30 * 86_400, "seconds", "Longest lease granted; longer requests are shortened.", low=60, high=366 * 86_400
    )
    lease_s_default: int = _setting(86_400, "seconds", "Lease granted when none is asked.", low=1, high=366 * 86_400)
    subscription_lease_s_default: int = _setting(
        7 * 86_400,
        "seconds",
        "Lease of a durable subscription when none is asked; HERALD_LEASE_S_DEFAULT where that is longer, and never more than HERALD_LEASE_S_MAX.",
        low=1,
        high=366 * 86_400,
    )
    history_events_max: int = _setting(10_000_000, "events", "Most history one rendezvous point may reserve.", low=1)
    history_bytes_max: int = _setting(1024**3, "bytes", "Most history one rendezvous point may reserve.", low=1024)
    history_quota_bytes: int = _setting(
        16 * 1024**3, "bytes", "Sum of all reserved histories. Keep it under what Redis can hold.", low=1024
    )
    rps_max: int = _setting(100_000, "rendezvous points", "Most rendezvous points of the domain.", low=1)
    subscriptions_per_rp_max: int = _setting(
        10_000, "subscriptions", "Most durable subscriptions of one rendezvous point.", low=1
    )

    session_buffer_bytes: int = _setting(
        256 * 1024, "bytes", "Unsent bytes at which a session stops being live and is fed from the log.", low=16 * 1024
    )
    session_subscriptions_max: int = _setting(10_000, "subscriptions", "Most subscriptions of one connection.", low=1)
    session_publishes_max: int = _setting(
        1024, "publishes", "Unanswered publishes of one connection before it is read no further.", low=1
    )
    sessions_max: int = _setting(
        100_000, "connections", "Most WebSocket and SSE connections of one gateway process; beyond it 503.", low=1
    )
    tick_ms: int = _setting(
        10,
        "milliseconds",
        "Frames of a busy rendezvous point are gathered this long. Raising it saves CPU and costs latency.",
        low=0,
        high=1000,
    )
    tick_max_ms: int = _setting(
        25,
        "milliseconds",
        "Where sending is dear (many sessions), frames are gathered longer, up to this. 0: never longer than the tick.",
        low=0,
        high=1000,
    )
    heartbeat_s: int = _setting(25, "seconds", "Ping of idle connections; two unanswered close them.", low=1, high=600)
    request_timeout_s: int = _setting(
        30, "seconds", "A request's headers and body must have arrived by then.", low=1, high=600
    )
    wait_s_max: int = _setting(60, "seconds", "Longest long-poll.", low=0, high=600)

    records: bool = _setting(True, "0 or 1", "Write access records, which the reports are made of (docs/records.md).")
    records_dir: str = _setting("", "folder", "Where access records are written. Empty: `records` in the data folder.")
    records_flush_s: int = _setting(
        5,
        "seconds",
        "Access records are on the disk after this long; what a killed gateway loses. Raising it saves little.",
        low=1,
        high=9,
    )
    records_segment_s: int = _setting(
        60,
        "seconds",
        "Access records of this long become one Parquet file. Raising it makes fewer files, and reports see them later.",
        low=1,
        high=3600,
    )
    records_waiting_max: int = _setting(
        100_000,
        "records",
        "Most access records in a gateway's memory, 0.3 KiB each; beyond it they are dropped and counted.",
        low=1000,
        high=10_000_000,
    )
    records_retention_days: int = _setting(
        400, "days", "Access records are removed when they are older.", low=1, high=36_500
    )

    reports: str = _setting(
        "auto",
        "auto or off",
        "Make reports of the access records every hour and day, where Java and PySpark are there. off: none, not even asked ones.",
    )
    reports_dir: str = _setting(
        "", "folder or URL", "Where reports are written. Empty: `reports` in the data folder. Spark must reach it too."
    )
    report_max_s: int = _setting(
        3600,
        "seconds",
        "A report that takes longer is stopped, and has failed. Raising it lets one hold the others up for longer.",
        low=5,
        high=7 * 86_400,
    )
    report_memory_mb: int = _setting(
        1024,
        "MiB",
        "Java memory of a report; its processes may take as much again, and 1 GiB. Longer periods of busy domains want more.",
        low=512,
        high=1024**2,
    )
    report_nice: int = _setting(
        10,
        "niceness",
        "How far a report gives way to the gateways and all else on its machine (nice(1)). 0: it competes with them.",
        low=0,
        high=19,
    )
    reports_retention_days: int = _setting(
        400,
        "days",
        "Reports of days, and those that were asked for, are removed when they are older.",
        low=1,
        high=36_500,
    )
    reports_hourly_days: int = _setting(
        31, "days", "Reports of hours are removed when they are older; there are 48 a day.", low=1, high=36_500
    )

    # Rates and quotas (docs/limits.md). Rates of the domain are shared out equally among its gateway processes.
    rate_window_s: int = _setting(
        2,
        "seconds",
        "How many seconds' worth of a rate may come at once. Raising it lets bursts through.",
        low=1,
        high=3600,
    )
    publish_events_per_s: int = _setting(
        100_000, "events per second", "Events that one principal may publish. 0: no limit.", low=0
    )
    publish_bytes_per_s: int = _setting(
        128 * 1024**2, "bytes per second", "Bytes of events that one principal may publish. 0: no limit.", low=0
    )
    rp_events_per_s: int = _setting(
        100_000, "events per second", "Events published at one rendezvous point, by all. 0: no limit.", low=0
    )
    rp_bytes_per_s: int = _setting(
        128 * 1024**2, "bytes per second", "Bytes of events at one rendezvous point, by all. 0: no limit.", low=0
    )
    domain_events_per_s: int = _setting(
        0, "events per second", "Events published in the domain, by all. 0: no limit but the machine's.", low=0
    )
    domain_bytes_per_s: int = _setting(
        0, "bytes per second", "Bytes of events published in the domain, by all. 0: no limit but the machine's.", low=0
    )
    requests_per_s: int = _setting(
        20_000,
        "requests per second",
        "Requests of one principal, refused ones too; without a valid token of one client address. 0: no limit.",
        low=0,
    )
    domain_requests_per_s: int = _setting(
        0, "requests per second", "Requests to the domain, by all. 0: no limit but the machine's.", low=0
    )
    failed_tokens_per_s: int = _setting(
        100,
        "tokens per second",
        "Tokens that do not verify, per client address; beyond it unknown tokens are refused unverified. 0: no limit.",
        low=0,
    )
    accepts_per_s: int = _setting(
        5000,
        "connections per second",
        "New WebSocket and SSE connections of one gateway process; beyond it 503. 0: no limit.",
        low=0,
    )
    sessions_per_principal: int = _setting(
        50_000,
        "connections",
        "WebSocket and SSE connections of one principal. 0: no limit.",
        low=0,
    )
    sessions_per_address: int = _setting(
        1000,
        "connections",
        "WebSocket and SSE connections without a token, of one client address. 0: no limit.",
        low=0,
    )
    rps_per_principal: int = _setting(
        10_000, "rendezvous points", "Rendezvous points of one creator, administrators excepted. 0: no limit.", low=0
    )
    history_bytes_per_principal: int = _setting(
        8 * 1024**3,
        "bytes",
        "Sum of the histories that one creator has reserved, administrators excepted. 0: no limit.",
        low=0,
    )
    subscriptions_per_principal: int = _setting(
        50_000, "subscriptions", "Durable subscriptions of one owner, administrators excepted. 0: no limit.", low=0
    )
    trusted_proxies: str = _setting(
        "",
        "networks",
        "Proxies whose X-Forwarded-For names the client, such as 10.0.0.0/8, 127.0.0.1. Empty: none is believed.",
    )

    audit_days: int = _setting(
        400,
        "days",
        "How long audit entries are kept; afterwards whole days are removed, which is itself an entry.",
        low=30,
        high=3660,
    )

    # Credentials from elsewhere (docs/tokens.md)
    foreign_algorithms: str = _setting(
        "Ed25519",
        "algorithms",
        "Of tokens of foreign issuers: some of Ed25519, ES256, RS256, separated by commas. Most OIDC providers sign RS256.",
    )
    allow_private_issuers: bool = _setting(
        False,
        "0 or 1",
        "Fetch keys of foreign issuers from private addresses too, and over http on this machine. For tests and intranets.",
    )
    allow_private_peers: bool = _setting(
        False,
        "0 or 1",
        "Call peers at private addresses too, also to look at them before they are peers. For intranets; where this "
        "domain's own address is loopback, other loopback addresses are called without it.",
    )
    delivery_lease_s: int = _setting(
        10,
        "seconds",
        "Of a durable subscription that several domains hold, how long one that fell silent is waited for before another "
        "delivers. Shorter takes over sooner, and by mistake where domains are slow.",
        low=3,
        high=300,
    )
    anonymous_sessions: bool = _setting(
        True,
        "0 or 1",
        "Let strangers hold WebSocket and SSE connections where a policy admits anyone. 0: they can only ask and go.",
    )

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Config:
        """Read all settings from `env`. Raises ConfigError with one clear sentence on the first bad one."""
        known = {f"HERALD_{f.name.upper()}": f for f in fields(cls)}
        values: dict[str, Any] = {}
        for name, text in env.items():
            if name not in known or text == "":
                continue
            setting = known[name]
            values[setting.name] = _parse(name, text, type(setting.default), setting.metadata)
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
        if self.reports not in ("auto", "off"):
            raise ConfigError(f"HERALD_REPORTS is {self.reports!r}; use auto or off.")
        if self.log_format not in ("text", "json"):
            raise ConfigError(f"HERALD_LOG_FORMAT is {self.log_format!r}; use text or json.")
        if self.otlp_url and not self.otlp_url.startswith(("http://", "https://")):
            raise ConfigError("HERALD_OTLP_URL is no http or https address; use one such as http://127.0.0.1:4318.")
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

    @property
    def data_path(self) -> Path:
        """The data folder, absolute."""
        return Path(self.data_dir).resolve()

    @property
    def records_path(self) -> Path:
        """The folder of the access records, absolute."""
        return Path(self.records_dir).resolve() if self.records_dir else self.data_path / "records"

    @property
    def reports_place(self) -> str:
        """The folder of the reports: an absolute path, or an address that Spark understands."""
        if "://" in self.reports_dir:
            return self.reports_dir.rstrip("/")
        return str(Path(self.reports_dir).resolve() if self.reports_dir else self.data_path / "reports")

    @property
    def base_url(self) -> str:
        """How clients reach this domain; no trailing slash."""
        if self.public_url:
            return self.public_url.rstrip("/")
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host  # noqa: S104 - compared, not bound
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def redis_socket(self) -> Path:
        """The embedded Redis server's unix socket: in the data folder, or under /tmp when that path is too long for one."""
        path = self.data_path / "redis.sock"
        if len(os.fsencode(path)) <= SOCKET_PATH_BYTES_MAX:
            return path
        return Path("/tmp") / f"herald-{hashlib.sha256(os.fsencode(path)).hexdigest()[:16]}" / "redis.sock"  # noqa: S108

    @property
    def subscription_lease_s(self) -> int:
        """The lease of a durable subscription when none is asked, seconds."""
        return min(max(self.subscription_lease_s_default, self.lease_s_default), self.lease_s_max)

    @property
    def effective_redis_url(self) -> str:
        """The Redis in use: the given URL, else the embedded server's socket."""
        return self.redis_url or f"unix://{self.redis_socket}"


def unknown_settings(env: Mapping[str, str]) -> list[str]:
    """Names in `env` that look like ours but are not: likely misspelled. HERALD_TOKEN and HERALD_URL are the client's."""
    known = {*_names(), "HERALD_TOKEN", "HERALD_URL", "HERALD_HOME", "HERALD_TRACEBACK", "HERALD_PROCESS"}
    return sorted(name for name in env if name.startswith("HERALD_") and name not in known)


def unknown_setting(name: str) -> str:
    """The sentence for the operator about one of `unknown_settings`, with the setting that may be meant."""
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
