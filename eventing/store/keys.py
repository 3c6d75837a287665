"""Names of all keys and channels in Redis.

All keys of an RP share its hash tag, and so do keys of one script, or of one transaction, about something else. Every other
key is used alone, so its slot does not matter ([decision 118](../../docs/decisions/0118-each-rendezvous-point-has-one-primary.md)).
"""

from __future__ import annotations

DESCRIPTOR_CHANNEL = "herald:descriptors"
REVOCATION_CHANNEL = "herald:revocations"
KEYS_CHANNEL = "herald:keys"
SESSIONS_CHANNEL = "herald:sessions"  # queries to all gateways about their sessions
READER_MOVES_KEY = "herald:{moves}:readers"  # hash of moves of readers by id (store/reader_moves.py)
READER_MOVES_CHANNEL = "herald:{moves}:changed"  # that they changed
REPORTS_KEY = "herald:reports"  # whether reports can be made, according to the process that starts them
LOG_PATTERN = "herald:{*}:meta"
SHARD_KEY = "herald:shard"  # at each of several separate servers: which shard it is (store/shards.py)
RESTORING_KEY = "herald:restoring"  # present while a backup is being restored into this Redis: no domain starts on it


def log_keys(rp: str) -> tuple[str, str, str, str]:
    """Return the keys of one log: the stream, its head, and the ids of the present and of the previous window."""
    return f"herald:{{{rp}}}:log", meta_key(rp), f"herald:{{{rp}}}:ids", f"herald:{{{rp}}}:ids-before"


def meta_key(rp: str) -> str:
    """Return the key of the hash with a log's epoch, next offset and bounds."""
    return f"herald:{{{rp}}}:meta"


def rp_prefix(rp: str) -> str:
    """Return the prefix of all keys of one RP."""
    return f"herald:{{{rp}}}:"


def log_copy_key(rp: str) -> str:
    """Return the key of the copy of a log that is being continued in a new epoch (log/lineage.py)."""
    return f"herald:{{{rp}}}:log-copy"


def feeds_key(rp: str) -> str:
    """Return the key of the hash of other domains' feeds: feed key -> last sequence held."""
    return f"herald:{{{rp}}}:feeds"


def vectors_key(rp: str) -> str:
    """Return the key of the stream of checkpoints: vectors at some offsets of a log with other domains' feeds."""
    return f"herald:{{{rp}}}:vectors"


def seals_key(rp: str, feed: str) -> str:
    """Return the key of the stream of the seals of a feed's runs."""
    return seals_prefix(rp) + feed


def seals_prefix(rp: str) -> str:
    """Return the prefix of the keys of all seals of an RP."""
    return f"herald:{{{rp}}}:seals:"


def feed_keys(rp: str) -> tuple[str, str, str]:
    """Return the keys of a log's feeds: held sequences, checkpoints, prefix of the seals' keys."""
    return feeds_key(rp), vectors_key(rp), seals_prefix(rp)


def routes_key(rp: str) -> str:
    """Return the key of the routes that are planned for the RP's feeds (store/rp_routes.py)."""
    return f"herald:{{{rp}}}:routes"


def arrivals_key(rp: str, peer: str) -> str:
    """Return the key of the hash that counts events which arrived at a participant in time, and which did not."""
    return f"herald:{{{rp}}}:arrivals:{peer}"


ROUTED_KEY = "herald:routed"  # set of RPs with planned routes


def cursors_key(rp: str) -> str:
    """Return the key of the hash of the cursors of the RP's durable subscriptions."""
    return f"herald:{{{rp}}}:cursors"


def shared_key(rp: str, subscription: str) -> str:
    """Return the key of the hash with the state of a shared durable subscription (shared_subscriptions.py)."""
    return f"herald:{{{rp}}}:shared:{subscription}"


def push_attempts_key(rp: str, subscription: str) -> str:
    """Return the key of the list of the last attempts to deliver to a subscription's endpoint."""
    return f"herald:{{{rp}}}:push:{subscription}"


def intake_uses_key(rp: str) -> str:
    """Return the key of the last uses of an RP's intakes."""
    return f"herald:{{{rp}}}:intake-uses"


def endpoint_page_link_key(digest: str) -> str:
    """Return the key of a link to an endpoint page, by the digest of its token."""
    return f"herald:endpoint-page:link:{digest}"


def endpoint_page_key(digest: str) -> str:
    """Return the key of a session of an endpoint page, by the digest of its token."""
    return f"herald:endpoint-page:session:{digest}"


def endpoint_page_count_key(subscription: str) -> str:
    """Return the key of the number of links that were made lately of a subscription."""
    return f"herald:endpoint-page:count:{subscription}"


PUSH_CHANNEL = "herald:push"  # ids of subscriptions whose endpoint or delivery changed
# Lists of ended subscriptions whose subscribers are to be notified, and of those for which it is under way (store/push_endings.py).
PUSH_ENDINGS_KEY = "herald:{push-endings}:queue"
PUSH_ENDINGS_TAKEN_KEY = "herald:{push-endings}:taken"
PUSH_TURN_KEY = "herald:push-turn"  # lease of the process that delivers to endpoints
HUB_REQUESTS_KEY = (
    "herald:{hub}:requests"  # hash of requests to the WebSub hub that are not settled (store/hub_requests.py)
)


def hub_note_key(intake: str) -> str:
    """Return the key of the last request of a WebSub hub to an intake."""
    return f"herald:intake:{intake}:hub"


def hub_count_key(kind: str, whom: str) -> str:
    """Return the key of the number of a minute's requests to the WebSub hub; `kind` is `from` or `to`."""
    return f"herald:{{hub}}:{kind}:{whom}"


SHARED_DUE_KEY = "herald:shared-due"  # ids of shared subscriptions by the time at which the sweep is due
SHARED_TURN_KEY = "herald:shared-turn"  # lease of the process that sweeps
SHARED_INDEXED_KEY = "herald:shared-indexed"  # set while SHARED_DUE_KEY is known to be complete


def audience_key(rp: str) -> str:
    """Return the key of the hash of the RP's connected audiences, by gateway (store/audience.py)."""
    return f"herald:{{{rp}}}:audience"


def notification_channel(rp: str) -> str:
    """Return the notification channel of the RP, on which each run of events is published once."""
    return f"herald:{{{rp}}}:bell"


def presence_key(child: str) -> str:
    """Return the key that a working child of the supervisor sets with an expiry of PRESENCE_S (portal/supervisor/presence.py)."""
    return f"herald:presence:{child}"


PROCESSES_KEY = "herald:processes"  # sorted set of processes behind the gateways, `KIND HOST PID`, by the end of their presence (Unix s)


def rp_of_meta_key(key: str) -> str:
    """Return the RP of a key made by `meta_key`."""
    return key[len("herald:{") : -len("}:meta")]


PRESENCE_S = 10  # five heartbeats; a killed process counts as missing after that

REGION_MESSAGES_KEY = (
    "herald:region-messages"  # list of other domains' messages about regions (store/region_messages.py)
)

FORWARD_QUEUE_KEY = "herald:forward-queue"  # list of peers to forward to, in a small domain (store/forward_queue.py)
REOPENING_KEY = "herald:reopening"  # Unix seconds since which links may be reopened (store/waiting_vectors.py); expires
VECTORS_URGENT_KEY = "herald:vectors-urgent"  # set while links fail (store/waiting_vectors.py); expires

SEALING_HELD_KEY = (
    "herald:sealing:held"  # sorted set of RPs whose own feed is held back from sealing after a start, by time (Unix s)
)
SEALING_CLAIMS_KEY = (
    "herald:sealing:claims"  # sorted set of "RP PEER" that claims more of the own feed than is sealed, likewise
)


def session_answers_key(reply: str) -> str:
    """Return the key of the list of the gateways' answers to one query about sessions."""
    return f"herald:sessions:{reply}"


# Presence and load of a domain's gateways (eventing/store/presence.py).
WATCHED_KEY = (
    "herald:watched"  # sorted set of administrative RPs with readers, by the time until which they count (Unix s)
)
GATEWAYS_KEY = "herald:gateways"  # sorted set of gateway ids, by the time from which they count as lost (Unix s)


def peer_key(peer: str, what: str) -> str:
    """Return a key about a peer; all keys of one peer are in one slot."""
    return f"herald:peer:{{{peer}}}:{what}"


def nonce_key(domain: str, nonce: str) -> str:
    """Return the key that is set while a request of `domain` with this nonce is known to have been accepted."""
    return f"herald:nonce:{domain}:{nonce}"


def floors_key(rp: str) -> str:
    """Return the key of the hash of low-water marks: per feed of the RP the oldest sequence that its origin keeps, with
    the statement."""
    return f"herald:{{{rp}}}:floors"


def gaps_key(rp: str) -> str:
    """Return the key of the hash of gaps in feeds of the RP."""
    return f"herald:{{{rp}}}:gaps"


DELIVERIES_TOLD_KEY = "herald:deliveries-told"  # hash by peer: digest of the last reported state of delivery
PEERS_TRAFFIC_KEY = "herald:peers-traffic"  # hash by peer: traffic with the peer in the last sample
SAMPLING_TURN_KEY = "herald:sampling-turn"  # lease of the gateway that samples the domain as a whole
WATCHING_TURN_KEY = (
    "herald:watching-turn"  # lease of the gateway that evaluates watch rules (eventing/operations/alarms/watcher.py)
)


def gateway_load_key(gateway: str) -> str:
    """Return the key of a gateway's last load sample."""
    return f"herald:load:{gateway}"


def gateway_late_key(gateway: str) -> str:
    """Return the key of a gateway's recent maximum event loop delay, in milliseconds."""
    return f"herald:late:{gateway}"


def rp_load_key(rp: str) -> str:
    """Return the key of the hash of an RP's last load samples, by gateway."""
    return f"herald:{{{rp}}}:load"


# The overlay (eventing/store/overlay_queues.py). All keys are in one slot.
OVERLAY_TURN_KEY = "herald:{overlay}:turn"  # lease of the process that runs the overlay
OVERLAY_PICTURE_KEY = "herald:{overlay}:picture"  # what that process shows (eventing/store/overlay_pictures.py)
OVERLAY_WATCHED_KEY = "herald:{overlay}:watched"  # present while people look at the picture
OVERLAY_SEEN_KEY = "herald:{overlay}:seen"  # what it knows of single domains
OVERLAY_LINKS_KEY = "herald:{overlay}:links"  # rows of measured links that plans of routes need
OVERLAY_STATE_KEY = "herald:{overlay}:state"  # what a restart of it takes up
OVERLAY_ROWS_KEY = "herald:{overlay}:rows"  # versions of the last own rows by gossip object

OVERLAY_SAMPLE_KEY = "herald:{overlay}:sample"  # its last sample (eventing/store/overlay_samples.py)


def overlay_inbox_key(owner: str) -> str:
    """Return the key of the list of messages of other domains for the owner of the lease; a successor has another list."""
    return f"herald:{{overlay}}:inbox:{owner}"


def overlay_outbox_key(domain: str) -> str:
    """Return the key of the list of messages that wait for a call of `domain`."""
    return f"herald:{{overlay}}:outbox:{domain}"
