"""Names of everything Herald keeps in Redis. All keys of an RP share its hash tag, so that a Redis Cluster can carry it."""

from __future__ import annotations

DESCRIPTOR_CHANNEL = "herald:descriptors"
REVOCATION_CHANNEL = "herald:revocations"
KEYS_CHANNEL = "herald:keys"
SESSIONS_CHANNEL = "herald:sessions"  # asks of all gateways about their sessions
REPORTS_KEY = "herald:reports"  # whether reports can be made, as whoever would start them says
LOG_PATTERN = "herald:{*}:meta"


def log_keys(rp: str) -> tuple[str, str, str, str]:
    """The keys of one log: the stream, its head, and the ids seen in the present and the previous window."""
    return f"herald:{{{rp}}}:log", meta_key(rp), f"herald:{{{rp}}}:ids", f"herald:{{{rp}}}:ids-before"


def meta_key(rp: str) -> str:
    """The hash that holds a log's epoch, next offset and bounds."""
    return f"herald:{{{rp}}}:meta"


def feeds_key(rp: str) -> str:
    """The hash of the feeds of other domains: feed key -> last sequence held."""
    return f"herald:{{{rp}}}:feeds"


def vectors_key(rp: str) -> str:
    """The stream of checkpoints: the vector after some offsets of a log that holds other domains' feeds."""
    return f"herald:{{{rp}}}:vectors"


def seals_key(rp: str, feed: str) -> str:
    """The stream of the seals of a feed's runs."""
    return seals_prefix(rp) + feed


def seals_prefix(rp: str) -> str:
    """What the keys of all seals of an RP begin with."""
    return f"herald:{{{rp}}}:seals:"


def feed_keys(rp: str) -> tuple[str, str, str]:
    """What a log keeps of feeds beside its entries: how far they are, the checkpoints, the prefix of the seals' keys."""
    return feeds_key(rp), vectors_key(rp), seals_prefix(rp)


def cursors_key(rp: str) -> str:
    """The hash of the cursors of the RP's durable subscriptions."""
    return f"herald:{{{rp}}}:cursors"


def shared_key(rp: str, subscription: str) -> str:
    """The hash of what moves about a durable subscription that several domains hold (shared_subscriptions.py)."""
    return f"herald:{{{rp}}}:shared:{subscription}"


SHARED_DUE_KEY = "herald:shared-due"  # ids of shared subscriptions by when the sweep is to look at them
SHARED_TURN_KEY = "herald:shared-turn"  # who sweeps now


def audience_key(rp: str) -> str:
    """The hash of how many of the RP's audiences read, by gateway (store/audience.py)."""
    return f"herald:{{{rp}}}:audience"


def bell_channel(rp: str) -> str:
    """The pub/sub channel on which each run of events is published once."""
    return f"herald:{{{rp}}}:bell"


def presence_key(child: str) -> str:
    """Set with an expiry of PRESENCE_S by a child of the supervisor while it does its part (portal/supervisor/presence.py)."""
    return f"herald:presence:{child}"


def rp_of_meta_key(key: str) -> str:
    """The RP that a key made by `meta_key` belongs to."""
    return key[len("herald:{") : -len("}:meta")]


PRESENCE_S = 10  # five heartbeats; what is killed is missed after that

SEALING_HELD_KEY = (
    "herald:sealing:held"  # sorted set of RPs whose own feed is not sealed yet after a start, by time (Unix s)
)
SEALING_CLAIMS_KEY = (
    "herald:sealing:claims"  # sorted set of "RP PEER" that claims more of our feed than is sealed, likewise
)


def session_answers_key(reply: str) -> str:
    """The list of the gateways' answers to one ask about sessions."""
    return f"herald:sessions:{reply}"


# What the gateways of a domain tell each other of watching and load (eventing/operations/samples/presence.py).
WATCHED_KEY = "herald:watched"  # sorted set of administrative RPs that somebody reads, by when that is over (Unix s)
GATEWAYS_KEY = "herald:gateways"  # sorted set of gateway ids, by when they count as lost (Unix s)


def peer_key(peer: str, what: str) -> str:
    """A key about a peer; all of one peer are in one slot."""
    return f"herald:peer:{{{peer}}}:{what}"


DELIVERIES_TOLD_KEY = "herald:deliveries-told"  # hash: digest of how delivery to a peer was told to go, by peer
PEERS_TRAFFIC_KEY = "herald:peers-traffic"  # hash: what was exchanged with a peer in the last sample, by peer
SAMPLING_TURN_KEY = "herald:sampling-turn"  # the gateway that samples what is the domain's and no gateway's
WATCHING_TURN_KEY = "herald:watching-turn"  # the gateway that looks whether watch rules are kept (eventing/operations/alarms/watcher.py)


def gateway_load_key(gateway: str) -> str:
    """The last load sample of a gateway."""
    return f"herald:load:{gateway}"


def gateway_late_key(gateway: str) -> str:
    """How late a gateway's event loop was at most in its last turns, in milliseconds."""
    return f"herald:late:{gateway}"


def rp_load_key(rp: str) -> str:
    """The hash of the last load samples of an RP, by gateway."""
    return f"herald:{{{rp}}}:load"
