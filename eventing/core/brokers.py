"""Addresses of the broker, the server of the task queues (HERALD_BROKER_URL): a Redis, Sentinels of one, or RabbitMQ. Pure."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from eventing.core.errors import ConfigError
from eventing.core.sentinels import FORM, SentinelAccess, parameters_of, sentinel_access

REDIS = ("redis", "rediss", "unix")
SENTINELS = {"sentinel": False, "redis+sentinel": False, "rediss+sentinel": True}
"""Schemes of Sentinels, the last two as of the data plane: whether connections to the Redis use TLS."""
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
        tls: connections to the broker use TLS.
        access: how the Sentinels are asked.
    """

    url: str
    kind: str
    master: str
    places: tuple[tuple[str, int], ...]
    tls: bool = False
    access: SentinelAccess = SentinelAccess()


def broker_address(setting: str, url: str) -> BrokerAddress:
    """Read an address. Raises ConfigError with one sentence that names the setting and repeats no secret."""
    scheme = url.partition("://")[0].lower() if "://" in url else ""
    if "cluster" in scheme or "shards" in scheme:
        raise ConfigError(
            f"{setting} names a Redis Cluster or shards, which Celery cannot use as its broker; set HERALD_BROKER_URL to a single "
            "Redis, to Sentinels of one, or to RabbitMQ."
        )
    if scheme in SENTINELS:
        return _sentinels(setting, url, SENTINELS[scheme])
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
    return BrokerAddress(url, kind, "", ((host, port or usual),), scheme in ("rediss", "amqps"))


def _sentinels(setting: str, url: str, tls: bool) -> BrokerAddress:
    """Read `sentinel://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]...]/MASTER[?db=N]`, with the Sentinels' own credentials."""
    parts = urlsplit(url)
    user_and_password, at, hosts = parts.netloc.rpartition("@")
    user, colon, password = user_and_password.partition(":")
    credentials = f"{_quoted(user)}{colon}{_quoted(password)}{at}"
    master = parts.path.strip("/")
    places: list[tuple[str, int]] = []
    for one in hosts.split(","):
        host, _, port = one.partition(":")
        if not host or (port and not port.isdecimal()) or int(port or SENTINEL_PORT) > 65535:
            places = []
            break
        places.append((host, int(port or SENTINEL_PORT)))
    try:
        parameters = parameters_of(parts.query)
        access = sentinel_access(parameters)
    except ValueError:
        parameters, access, places = {}, SentinelAccess(), []
    database = parameters.pop("db", "0")
    is_named = bool(master) and "/" not in master and database.isdecimal()
    if not places or len(places) > SENTINELS_MAX or not is_named or parameters:
        raise ConfigError(
            f"{setting} cannot be read; use sentinel://HOST:PORT,HOST:PORT/MASTER, with ?db=N for another database, and "
            f"{FORM} for Sentinels that demand it."
        )
    urls = [f"sentinel://{credentials}{host}:{port}/{database}" for host, port in places]
    return BrokerAddress(";".join(urls), "sentinel", master, tuple(places), tls, access)


def _quoted(text: str) -> str:
    return quote(unquote(text), safe="")  # Celery ends a URL at a semicolon
