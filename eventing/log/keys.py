"""Names of everything Herald keeps in Redis. All keys of an RP share its hash tag, so that a Redis Cluster can carry it."""

from __future__ import annotations

DESCRIPTOR_CHANNEL = "herald:descriptors"
REVOCATION_CHANNEL = "herald:revocations"
KEYS_CHANNEL = "herald:keys"
LOG_PATTERN = "herald:{*}:meta"


def log_keys(rp: str) -> tuple[str, str, str, str]:
    """The keys of one log: the stream, its head, and the ids seen in the present and the previous window."""
    return f"herald:{{{rp}}}:log", meta_key(rp), f"herald:{{{rp}}}:ids", f"herald:{{{rp}}}:ids-before"


def meta_key(rp: str) -> str:
    """The hash that holds a log's epoch, next offset and bounds."""
    return f"herald:{{{rp}}}:meta"


def cursors_key(rp: str) -> str:
    """The hash of the cursors of the RP's durable subscriptions."""
    return f"herald:{{{rp}}}:cursors"


def bell_channel(rp: str) -> str:
    """The pub/sub channel on which each run of events is published once."""
    return f"herald:{{{rp}}}:bell"


def rp_of_meta_key(key: str) -> str:
    """The RP that a key made by `meta_key` belongs to."""
    return key[len("herald:{") : -len("}:meta")]


def rp_of_bell(channel: str) -> str:
    """The RP that a channel made by `bell_channel` belongs to."""
    return channel[len("herald:{") : -len("}:bell")]


WORKER_PRESENCE_KEY = "herald:presence:workers"  # set with an expiry by every round of the workers
WORKER_PRESENCE_S = 20
