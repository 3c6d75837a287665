"""Addresses of the broker, the server of the task queues (HERALD_BROKER_URL): a Redis, Sentinels of one, or RabbitMQ. Pure."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from eventing.core.errors import ConfigError

REDIS = ("redis", "rediss", "unix")
SENTINEL = "sentinel"
AMQP = ("amqp", "amqps")
SENTINEL_PORT = 26379
SENTINELS_MAX = 16  # bound: Sentinels of an address; the start is refused


class BrokerAddress(NamedTuple):
    """An address of the broker.

    Attributes:
        url: in Celery's form.
        kind: `redis`, `sentinel` or `amqp`.
        master: name of the monitored Redis; empty without Sentinels.
        places: host and port of each server; none for a unix socket.
    """

    url: str
    kind: str
    master: str
    places: tuple[tuple[str, int], ...]


def broker_address(setting: str, url: str) -> BrokerAddress:
    """Read an address. Raises ConfigError with one sentence that names the setting and repeats no secret."""
    scheme = url.partition("://")[0].lower() if "://" in url else ""
    if "cluster" in scheme or "shards" in scheme:
        raise ConfigError(
            f"{setting} names a Redis Cluster or shards, which Celery cannot use as its broker; set HERALD_BROKER_URL to a single "
            "Redis, to Sentinels of one, or to RabbitMQ."
        )
    if scheme in (SENTINEL, f"redis+{SENTINEL}"):  # the second one is the data plane's form
        return _sentinels(setting, url)
    if scheme not in (*REDIS, *AMQP):
        raise ConfigError(
            f"{setting} is no address of a broker; use redis://, rediss://, unix://, sentinel://, amqp:// or amqps://."
        )
    if scheme == "unix":
        return BrokerAddress(url.replace("unix://", "redis+socket://", 1), "redis", "", ())
    netloc = urlsplit(url).netloc
    if not netloc.rpartition("@")[2] or "," in netloc:
        raise ConfigError(f"{setting} has to name one server; for several use sentinel://HOST,HOST/MASTER.")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ConfigError(f"{setting} has a host or port that cannot be read.") from None
    kind = "amqp" if scheme in AMQP else "redis"
    usual = {"redis": 6379, "rediss": 6379, "amqp": 5672, "amqps": 5671}[scheme]
    return BrokerAddress(url, kind, "", ((host, port or usual),))


def _sentinels(setting: str, url: str) -> BrokerAddress:
    """Read `sentinel://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]...]/MASTER[?db=N]`."""
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    master = parts.path.strip("/")
    database = parse_qs(parts.query).get("db", ["0"])[0]
    places: list[tuple[str, int]] = []
    for one in hosts.split(","):
        host, _, port = one.partition(":")
        if not host or (port and not port.isdecimal()) or int(port or SENTINEL_PORT) > 65535:
            places = []
            break
        places.append((host, int(port or SENTINEL_PORT)))
    if not places or len(places) > SENTINELS_MAX or not master or "/" in master or not database.isdecimal():
        raise ConfigError(
            f"{setting} cannot be read; use sentinel://HOST:PORT,HOST:PORT/MASTER, with ?db=N for another database."
        )
    urls = [f"sentinel://{user}{at}{host}:{port}/{database}" for host, port in places]
    return BrokerAddress(";".join(urls), "sentinel", master, tuple(places))
