"""Addresses of the data plane (HERALD_REDIS_URL), and which of its servers holds what. Pure.

A data plane is one server, a server that Sentinels watch, or several primaries, each with a share of the rendezvous points: the
shards of a Redis or Valkey Cluster, or separate servers. All share one rule: a key's slot is CRC16 of its hash tag modulo
16384 (redis.io/topics/cluster-spec), and each slot has one primary. In a cluster the servers state which; otherwise
the slots are divided evenly, in the order in which the address names the servers.
"""

from __future__ import annotations

from array import array
from binascii import crc_hqx
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from eventing.core.errors import ConfigError
from eventing.core.sentinels import FORM as SENTINEL_FORM
from eventing.core.sentinels import SentinelAccess, parameters_of, sentinel_access

SLOTS = 16384
PLACES_MAX = 64  # bound: servers that an address names; the start is refused
SINGLE, SENTINEL, SHARDS, CLUSTER = "single", "sentinel", "shards", "cluster"
SEVERAL = {
    "redis+sentinel": (SENTINEL, False),
    "rediss+sentinel": (SENTINEL, True),
    "sentinel": (SENTINEL, False),
    "redis+shards": (SHARDS, False),
    "rediss+shards": (SHARDS, True),
    "redis+cluster": (CLUSTER, False),
    "rediss+cluster": (CLUSTER, True),
}
"""Schemes of addresses with several servers: the kind, and whether connections to the servers use TLS."""
_PORTS = {SENTINEL: 26379, SHARDS: 6379, CLUSTER: 6379}
_FORMS = {
    SENTINEL: "redis+sentinel://HOST:PORT,HOST:PORT/MASTER[,MASTER...]",
    SHARDS: "redis+shards://HOST:PORT,HOST:PORT",
    CLUSTER: "redis+cluster://HOST:PORT,HOST:PORT",
}
_UNOWNED = 0xFFFF


class ServerAddress(NamedTuple):
    """Address of a server."""

    host: str
    port: int

    @property
    def name(self) -> str:
        """Host and port as text."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class DataPlaneAddress:
    """An address of the data plane.

    Attributes:
        url: as configured.
        kind: `single`, `sentinel`, `shards` or `cluster`.
        places: the servers that the address names: Sentinels, shards in order, or some nodes of the cluster; () for a single server.
        masters: names of the primaries that the Sentinels watch, in order.
    """

    url: str = field(repr=False)
    kind: str = SINGLE
    places: tuple[ServerAddress, ...] = ()
    masters: tuple[str, ...] = ()
    _scheme: str = field(default="redis", repr=False)
    _credentials: str = field(default="", repr=False)
    _database: str = "0"
    _access: SentinelAccess = field(default=SentinelAccess(), repr=False)

    def url_of(self, place: ServerAddress) -> str:
        """Return the URL of one server, with the address' credentials."""
        return f"{self._scheme}://{self._credentials}{place.name}/{self._database}"

    def sentinel_url_of(self, place: ServerAddress) -> str:
        """Return the URL of a Sentinel, with the Sentinels' own credentials."""
        return self._access.url_of(place.name)


def data_plane_address(url: str) -> DataPlaneAddress:
    """Read an address; every address with an unknown scheme counts as that of a single server, which redis-py reads.

    Raises ConfigError with one sentence that repeats no secret.
    """
    scheme = url.partition("://")[0].lower() if "://" in url else ""
    if scheme not in SEVERAL:
        if "," in url.partition("?")[0].rpartition("@")[2] and scheme in ("redis", "rediss"):
            raise ConfigError(
                "HERALD_REDIS_URL names several servers; say of what kind: redis+cluster://, redis+sentinel:// or redis+shards://."
            )
        return DataPlaneAddress(url)
    kind, tls = SEVERAL[scheme]
    # By hand: several hosts are no host to urlsplit, and newer Pythons refuse brackets that do not enclose all of it.
    before, _, fragment = url.partition("://")[2].partition("#")
    place, _, query_text = before.partition("?")
    netloc, _, path = place.partition("/")
    user_and_password, _, hosts = netloc.rpartition("@")
    path, access = path.strip("/"), SentinelAccess()
    try:
        query = parameters_of(query_text)
        if kind == SENTINEL:
            access = sentinel_access(query)
    except ValueError:
        raise _unreadable(kind) from None
    masters = tuple(path.split(",")) if kind == SENTINEL else ()
    database = query.pop("db", "0")
    if kind == SHARDS and path:
        database = path
    places = _places(hosts, _PORTS[kind])
    names_needed = kind == SENTINEL and (not all(masters) or "/" in path or len(set(masters)) < len(masters))
    if not places or names_needed or query or fragment or not database.isdecimal() or (kind == CLUSTER and path):
        raise _unreadable(kind)
    if kind == CLUSTER and database != "0":
        raise ConfigError("HERALD_REDIS_URL names a database of a cluster, which has only database 0.")
    if len(places) > PLACES_MAX:
        raise ConfigError(f"HERALD_REDIS_URL names {len(places)} servers; at most {PLACES_MAX} are possible.")
    if kind == SHARDS and len(set(places)) < len(places):
        raise ConfigError("HERALD_REDIS_URL names a shard twice.")
    credentials = ""
    if user_and_password:
        user, colon, password = user_and_password.partition(":")
        credentials = f"{_quoted(user)}{colon}{_quoted(password)}@"
    return DataPlaneAddress(url, kind, places, masters, "rediss" if tls else "redis", credentials, database, access)


def _unreadable(kind: str) -> ConfigError:
    parameters = f" Sentinels' own credentials are parameters: {SENTINEL_FORM}." if kind == SENTINEL else ""
    return ConfigError(f"HERALD_REDIS_URL cannot be read; use {_FORMS[kind]}.{parameters}")


def _quoted(text: str) -> str:
    return quote(unquote(text), safe="")


def _places(hosts: str, usual_port: int) -> tuple[ServerAddress, ...]:
    """Return the servers of a list; () if it cannot be read."""
    found: list[ServerAddress] = []
    for one in hosts.split(","):
        try:
            parts = urlsplit(f"//{one}")
            host, port = parts.hostname or "", parts.port
        except ValueError:
            return ()
        if not host or parts.path or parts.username is not None or port == 0:
            return ()
        found.append(ServerAddress(host, port or usual_port))
    return tuple(found)


def slot_of_tag(tag: str) -> int:
    """Return the slot of all keys with this hash tag."""
    return crc_hqx(tag.encode(), 0) & 0x3FFF


def slot_of_key(key: str | bytes) -> int:
    """Return the slot of a key or of a sharded channel."""
    raw = key.encode() if isinstance(key, str) else key
    begin = raw.find(b"{")
    if begin >= 0:
        end = raw.find(b"}", begin + 1)
        if end > begin + 1:
            raw = raw[begin + 1 : end]
    return crc_hqx(raw, 0) & 0x3FFF


class Primary(NamedTuple):
    """A server that takes writes, with the number of its replicas where the topology states it."""

    place: ServerAddress
    replicas: int = 0


class UnownedSlot(Exception):
    """No server is known to hold the slot."""


class Topology:
    """Primaries of a data plane, and which of them holds each slot. Never changed.

    Args:
        primaries: in a lasting order.
        ranges: first slot, last slot, and index of the primary.
    """

    __slots__ = ("_owners", "primaries")

    def __init__(self, primaries: Sequence[Primary], ranges: Iterable[tuple[int, int, int]]) -> None:
        self.primaries = tuple(primaries)
        self._owners = array("H", [_UNOWNED]) * SLOTS
        for first, last, owner in ranges:
            self._owners[first : last + 1] = array("H", [owner]) * (last + 1 - first)

    def home_of_slot(self, slot: int) -> Primary:
        """Return the primary of a slot. Raises UnownedSlot."""
        owner = self._owners[slot]
        if owner == _UNOWNED:
            raise UnownedSlot
        return self.primaries[owner]

    @property
    def covers_all(self) -> bool:
        """True if each slot has a primary."""
        return _UNOWNED not in self._owners

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Topology):
            return NotImplemented
        return self.primaries == other.primaries and self._owners == other._owners

    __hash__ = None  # type: ignore[assignment]  # compared only


def divided(places: Sequence[ServerAddress]) -> Topology:
    """Divide the slots evenly among separate servers, in their order."""
    count = len(places)
    ranges = [(SLOTS * at // count, SLOTS * (at + 1) // count - 1, at) for at in range(count)]
    return Topology([Primary(place) for place in places], ranges)


def cluster_topology(answer: Sequence[Sequence[Any]], asked: ServerAddress) -> Topology:
    """Read the answer of CLUSTER SLOTS.

    Args:
        asked: the server that answered; one without a name in the answer is this one's host.

    Raises ValueError for what is no such answer.
    """
    try:
        primaries: dict[ServerAddress, Primary] = {}
        rows = []
        for first, last, primary, *replicas in sorted(answer, key=lambda row: row[0]):
            if not 0 <= first <= last < SLOTS:
                raise ValueError("a slot beyond the range")
            place = _node_place(primary, asked)
            primaries.setdefault(place, Primary(place, len(replicas)))
            rows.append((first, last, place))
        order = {place: at for at, place in enumerate(sorted(primaries))}
        return Topology([primaries[place] for place in order], [(first, last, order[at]) for first, last, at in rows])
    except (TypeError, IndexError, AttributeError) as error:
        raise ValueError("no answer of CLUSTER SLOTS") from error


def _node_place(node: Sequence[Any], asked: ServerAddress) -> ServerAddress:
    host = node[0].decode() if node[0] else ""
    return ServerAddress(asked.host if host in ("", "?") else host, int(node[1]))


# Commands

_KEYLESS = frozenset(
    (
        "PING",
        "INFO",
        "TIME",
        "CONFIG",
        "SCAN",
        "SCRIPT",
        "WAIT",
        "WAITAOF",
        "FLUSHDB",
        "FLUSHALL",
        "DBSIZE",
        "KEYS",
        "ROLE",
    )
)
_KEYS_ONLY = frozenset(("DEL", "UNLINK", "EXISTS", "MGET", "TOUCH"))
_TWO_KEYS = frozenset(("LMOVE", "RENAME", "RENAMENX", "SMOVE", "COPY", "RPOPLPUSH"))


def key_of_command(command: Sequence[Any]) -> Any:
    """Return the first key (or channel) of a command, by which its server is found; None for a command about no key."""
    name = command[0]
    if name in ("EVALSHA", "EVAL"):
        return command[3] if int(command[2]) else None
    if name.partition(" ")[0] in _KEYLESS or len(command) < 2:
        return None
    return command[1]


def keys_of_command(command: Sequence[Any]) -> Sequence[Any]:
    """Return all keys of a command of Herald's; of a command of another form the first one."""
    name = command[0]
    if name in ("EVALSHA", "EVAL"):
        return command[3 : 3 + int(command[2])]
    if name in _KEYS_ONLY:
        return command[1:]
    if name in _TWO_KEYS:
        return command[1:3]
    if name in ("BLPOP", "BRPOP"):
        return command[1:-1]
    key = key_of_command(command)
    return () if key is None else (key,)
