// Made by `manage.py typescript` from the shapes of answers; `make check` keeps it current.

/** The state of the domain at a place of its administrative log. */
export interface DomainSnapshot {
  /** Cursor of the administrative log from which to continue. */
  cursor: string;
  state: DomainState;
}

/** The state of the domain. */
export interface DomainState {
  domain: DomainName;
  counts: DomainCounts;
  redis: RedisLoad;
  gateways: Record<string, GatewayLoadRow>;
  peers: Record<string, PeerRow>;
  acquaintances: Record<string, AcquaintanceRow>;
  alarms: Record<string, AlarmData>;
  watches: Record<string, WatchRuleData>;
  quarantines: Record<string, QuarantineRow>;
  misbehaviour: Record<string, MisbehaviourData>;
  reports: Record<string, ReportRunData>;
  recent_rps: Record<string, RecentRpData>;
}

/** The domain. */
export interface DomainName {
  name: string;
  /** Version of the software. */
  version: string;
}

/** Counts of what the domain holds. */
export interface DomainCounts {
  /** RPs, including replicas of others' RPs. */
  rps: number;
  /** Durable subscriptions. */
  subscriptions: number;
  /** History that the RPs have reserved, bytes. */
  reserved_bytes: number;
  /** History that the domain may reserve, bytes. */
  quota_bytes: number;
}

/** Load of Redis. */
export interface RedisLoad {
  /** Memory used now, bytes. */
  used_bytes: number;
  /** Commands per second, as Redis states. */
  ops_s: number;
}

/** Activity of a gateway process in all. */
export interface GatewayLoadRow {
  /** Id of the gateway process, new at each start. */
  gateway: string;
  /** End of the interval. */
  at: string;
  /** Length of the interval, seconds. */
  interval_s: number;
  /** Successful requests and frames that published. */
  publishes: number;
  /** Events that clients published. */
  events_in: number;
  /** Bytes of these events, as stored. */
  bytes_in: number;
  /** Events written to readers, once for each reader. */
  deliveries: number;
  /** Bytes of these events. */
  bytes_out: number;
  /** Readings now: a session that reads three RPs counts as three. */
  readings: number;
  /** Operations refused. */
  refused: number;
  /** Sessions opened. */
  accepts: number;
  /** Sessions closed. */
  closes: number;
  /** Sessions open now. */
  sessions: number;
  /** Processor seconds used. */
  cpu_s: number;
  /** Resident memory now, bytes. */
  rss_bytes: number;
  /** Greatest delay of the event loop, milliseconds. */
  lag_ms: number;
  /** The RPs with most activity. */
  hot: HotRp[];
}

/** A rendezvous point with much activity. */
export interface HotRp {
  rp: string;
  /** Events that clients published there. */
  events_in: number;
  /** Events written to its readers. */
  deliveries: number;
  /** Readings of the RP now. */
  readings: number;
  /** Of these, readers who were redirected to another domain and have not gone yet. */
  leaving?: number;
}

/** A peer, the delivery to it and the traffic with it. */
export interface PeerRow {
  /** The domain's name. */
  name: string;
  /** Address of the peer. */
  url: string;
  /** State of the peering at this domain. */
  state: "proposed" | "asked" | "active" | "suspended";
  /** Its stance, as it reported last; null: not received. */
  theirs: "proposes" | "approves" | "suspends" | "waits" | "leaves" | null;
  /** The kid of the domain's first key. */
  fingerprint: string;
  /** Whether the peer may send events. */
  push: boolean;
  /** Whether the peer may have replicas hosted here. */
  host: boolean;
  /** Whether the peer takes part in gossip. */
  gossip: boolean;
  lease: PeerLease;
  delivery: DeliveryData;
  traffic: TrafficRow;
}

/** The lease of a peer; contact renews it. */
export interface PeerLease {
  /** Seconds without contact until the peering expires. */
  granted_s: number;
  /** When the peering expires. */
  expires_at: string;
}

/** The state of delivery to a peer. */
export interface DeliveryData {
  /** Events that wait for the peer, as of some seconds ago; 0 while delivery works and none has waited for 2 s. */
  backlog: number;
  /** When the oldest of them was stored here; null: none. */
  oldest_at: string | null;
  /** Consecutive failures; 0 while delivery works. */
  failures: number;
  /** First of these, or since when nothing arrives although none fails. */
  first_failure_at: string | null;
  /** When delivery is retried, or a pause ends; null: all is well, or it is stopped. */
  next_try_at: string | null;
  /** Since when delivery is stopped until an administrator or the peer changes something. */
  stopped_at: string | null;
  /** null: all is well. */
  class: "unreachable" | "busy" | "refused" | "invalid" | "paused" | "not-taking" | null;
  /** The last failure in a sentence; empty while delivery works. */
  detail: string;
}

/** The exchange with a peer in the last interval. */
export interface TrafficRow {
  /** Events in requests that the peer acknowledged. */
  sent: number;
  /** New events received from the peer. */
  taken: number;
  /** Duplicate events received from the peer. */
  copies: number;
  /** Requests received from the peer. */
  requests: number;
  interval_s: number;
  /** Length of the interval, seconds; null: not sampled recently. */
  at: string | null;
}

/** A domain that is no peer and with which events are exchanged, at rendezvous points to which both are admitted. */
export interface AcquaintanceRow {
  /** The domain's name. */
  acquaintance: string;
  /** Address of its gateways. */
  url: string;
  /** The kid of its first key, as the directory names it. */
  fingerprint: string;
  since: string;
}

/** An alarm in force. */
export interface AlarmData {
  /** Id of the alarm, constant while it lasts. */
  id: string;
  /** Id of the rule that is broken. */
  rule: string;
  /** Kind of the rule. */
  kind: "lag" | "loss" | "backlog" | "lease_gap" | "silence" | "endpoint" | "reliability" | "history_quota" | "process_lag" | "audience" | "placement" | "homes";
  /** Id of the rendezvous point; null: the domain. */
  rp: string | null;
  /** Object of the alarm: a subscription, a peer, a gateway, an audience; may be empty. */
  about: string;
  severity: "warning" | "critical";
  /** One sentence: what is wrong. */
  detail: string;
  /** The values in the sentence. */
  values: MeasuredValue[];
  /** Path of the console's page that shows more. */
  link: string;
  /** When the rule was first broken. */
  since: string;
  /** When the alarm was raised: the rule's `for_s` later. */
  raised_at: string;
  /** When one of these members last changed. */
  changed_at: string;
  /** Acknowledgement; null: none. */
  acknowledged: AlarmAcknowledged | null;
  /** Whether its object has ended, so that it stays open until acknowledged. */
  lasting: boolean;
  /** The last mute; null: none. It may have ended by itself. */
  muted: AlarmMuted | null;
}

/** A measured value and its limit. */
export interface MeasuredValue {
  /** Name of the measured quantity. */
  name: string;
  /** Measured value, in `unit`. */
  value: number;
  /** Limit set by the rule, in `unit`. */
  limit: number;
  /** Unit: events, ends, s, ms, % or readers. */
  unit: string;
}

/** The acknowledgement of an alarm. */
export interface AlarmAcknowledged {
  at: string;
  /** Identity of the operator. */
  by: string;
  /** Note for people; may be empty. */
  note: string;
}

/** The mute of an alarm: nobody is notified of it. */
export interface AlarmMuted {
  /** When the mute ends by itself. */
  until: string;
  /** Identity of the operator. */
  by: string;
  /** Reason, for people; may be empty. */
  reason: string;
}

/** A watch rule in force. */
export interface WatchRuleData {
  /** Changes with the content of the rule. */
  id: string;
  /** Id of the rendezvous point; null: the domain. */
  rp: string | null;
  kind: "lag" | "loss" | "backlog" | "lease_gap" | "silence" | "endpoint" | "reliability" | "history_quota" | "process_lag" | "audience";
  severity: "warning" | "critical";
  /** Seconds that a broken rule waits for its alarm, and a kept one for its end. */
  for_s: number;
  /** Limits and filters of the kind (docs/operating.md). */
  settings: Record<string, unknown>;
  /** Time of the last change of the rules of the rendezvous point, or of the domain. */
  since: string;
}

/** A domain whose events are refused. */
export interface QuarantineRow {
  origin: string;
  why: string;
  since: string;
}

/** Misbehaviour of a domain, counted. */
export interface MisbehaviourData {
  kind: "forged" | "tampered" | "unchained" | "replayed" | "equivocation" | "quarantined" | "not-admitted" | "false-vector" | "false-gap" | "withheld" | "loop" | "flooding" | "oversize" | "malformed" | "false-record" | "flapping" | "false-loss";
  /** The peer that carried it; empty if not certain. */
  carrier: string;
  /** The domain concerned, if another. */
  origin: string;
  /** Occurrences so far. */
  count: number;
  /** Rendezvous point of the last occurrence; may be empty. */
  rp: string;
  /** Detail of the last occurrence, one sentence. */
  detail: string;
  /** Time of the last occurrence. */
  last_at: string;
}

/** A run of a report. */
export interface ReportRunData {
  id: string;
  job: "access" | "load" | "placement" | "overlap" | "federation" | "compaction";
  /** Begin of the period. */
  from: string;
  /** End of the period, exclusive. */
  to: string;
  cadence: "hourly" | "daily" | "asked";
  /** Identity that requested it; `domain`: the schedule. */
  by: string;
  state: "queued" | "running" | "done" | "failed" | "superseded";
  /** Number of the attempt. */
  attempt: number;
  /** Present stage; empty unless it runs. */
  stage: string;
  /** Completed units of the stage. */
  done: number;
  /** All units of the stage; 0 while not known. */
  total: number;
  /** Reason of the last or final failure; empty if none. */
  reason: string;
  /** When it was requested. */
  queued_at: string;
  /** Earliest begin; null unless it is queued. */
  next_try_at: string | null;
  /** When the last attempt began. */
  started_at: string | null;
  ended_at: string | null;
  /** When one of these members last changed. */
  changed_at: string;
}

/** A rendezvous point, without its lease. */
export interface RecentRpData {
  id: string;
  /** null: none. */
  name: string | null;
  /** For people; may be empty. */
  title: string;
  /** The home domain; if it differs from the answering domain, this is a replica. */
  home: string;
  /** Increases with every change, except of pause, lease, `audience` and `watch`. */
  version: number;
  /** Acknowledgement level. */
  ack: string;
  /** Target share of events that arrive at every participant in time; null: no target. */
  reliability: number | null;
  history: History;
  /** null: publishes are accepted. */
  paused: PausedState | null;
  /** Identity of the creator, or of the principal that requested the replica. */
  creator: string;
  /** When it was created here. */
  created_at: string;
}

/** Bounds of a history. */
export interface History {
  /** Events kept. */
  max_events: number;
  /** Bytes kept. */
  max_bytes: number;
  /** Seconds kept; null: no bound by age. */
  max_age_s: number | null;
}

/** A pause: this domain refuses publishes. */
export interface PausedState {
  at: string;
  /** Identity of the operator. */
  by: string;
  /** For people. */
  reason: string;
}

/** The state of an RP at a place of its administrative log. */
export interface RpSnapshot {
  /** Cursor of the administrative log from which to continue. */
  cursor: string;
  state: RpState;
}

/** The state of an RP. */
export interface RpState {
  /** The RP; null: there is no such RP. */
  rp: RendezvousPointData | null;
  subscriptions: Record<string, SubscriptionRow>;
  /** Load by gateway. */
  load: Record<string, RpLoadRow>;
  history: HistoryRow | null;
  replicas: Record<string, ReplicaRow>;
  alarms: Record<string, AlarmData>;
  watches: Record<string, WatchRuleData>;
}

/** A rendezvous point. */
export interface RendezvousPointData {
  id: string;
  /** null: none. */
  name: string | null;
  /** For people; may be empty. */
  title: string;
  /** The home domain; if it differs from the answering domain, this is a replica. */
  home: string;
  /** Increases with every change, except of pause, lease, `audience` and `watch`. */
  version: number;
  /** Acknowledgement level. */
  ack: string;
  /** Target share of events that arrive at every participant in time; null: no target. */
  reliability: number | null;
  history: History;
  /** null: publishes are accepted. */
  paused: PausedState | null;
  /** Identity of the creator, or of the principal that requested the replica. */
  creator: string;
  /** When it was created here. */
  created_at: string;
  lease: Lease;
}

/** A lease. */
export interface Lease {
  /** Requested duration in seconds; null: not stated. */
  asked_s: number | null;
  /** Seconds granted. */
  granted_s: number;
  /** End of the lease. */
  expires_at: string;
}

/** A durable subscription, its lag, and the state of its endpoint. */
export interface SubscriptionRow {
  id: string;
  /** Identity that may read and acknowledge. */
  owner: string;
  /** Increases with every change; the ETag. */
  version: number;
  history: History;
  deliver: DeliveryMode;
  lease: Lease;
  /** Id of the rendezvous point read. */
  at: string;
  lag: LagRow;
  endpoint: EndpointStateRow;
}

/** Delivery of events to the subscriber; the members after `mode` are those of an endpoint, without secrets. */
export interface DeliveryMode {
  /** `pull`, `webhook`, `cloudevents-http`, or `ws-eventing`, which a SOAP client states. */
  mode: string;
  /** Address of the endpoint, without its query. */
  url?: string;
  /** `structured`, `binary`, `batch` or `raw`; of WS-Eventing `2004`, `2011` or `2011-wrapped`. */
  format?: string;
  /** Whether an event is sent after the one before it is settled. */
  ordered?: boolean;
  /** Requests at once. */
  in_flight?: number;
  /** Most events of a request. */
  batch?: number;
  /** Names of the custom headers. */
  headers?: string[];
  /** `v1`, `v1a` or `both`, of Standard Webhooks. */
  signature?: string;
  /** How the endpoint consents: `challenge` or `cloudevents`. */
  verification?: string;
  /** Attempts after which an event is a dead letter; null: the endpoint is paused. */
  max_attempts?: number | null;
  /** Most requests a minute that the owner wants. */
  rate?: number;
  /** Fingerprint of the client certificate: `sha256:` and hexadecimal digits. */
  client_certificate?: string;
  /** Address that is warned of a pause, without its query. */
  warn_url?: string;
  /** Credential by the CloudEvents Subscriptions API, without its secret. */
  credential?: SinkCredentialShown;
}

/** A credential of a CloudEvents sink, without its secret. */
export interface SinkCredentialShown {
  type: "PLAIN" | "ACCESSTOKEN";
  /** Account of a plain credential; empty for a token. */
  identifier: string;
  /** When a token expires; null: never. */
  expires_at: string | null;
}

/** Progress of a durable subscription; all null: not sampled yet. */
export interface LagRow {
  events: number | null;
  lost: number | null;
  oldest_at: string | null;
  acknowledged: string | null;
  at: string | null;
}

/** State of an endpoint; all null: the events are pulled. */
export interface EndpointStateRow {
  state: "unverified" | "active" | "throttled" | "failing" | "paused" | "gone" | null;
  since: string | null;
}

/** Activity of a gateway process at one rendezvous point. */
export interface RpLoadRow {
  /** Id of the gateway process, new at each start. */
  gateway: string;
  /** End of the interval. */
  at: string;
  /** Length of the interval, seconds. */
  interval_s: number;
  /** Successful requests and frames that published. */
  publishes: number;
  /** Events that clients published. */
  events_in: number;
  /** Bytes of these events, as stored. */
  bytes_in: number;
  /** Events written to readers, once for each reader. */
  deliveries: number;
  /** Bytes of these events. */
  bytes_out: number;
  /** Readings now: a session that reads three RPs counts as three. */
  readings: number;
  /** Readings that began. */
  joined: number;
  /** Readings that ended. */
  left: number;
}

/** The extent of the log, as sampled. */
export interface HistoryRow {
  /** Epoch of the log. */
  epoch: string;
  /** Oldest offset held. */
  first: number;
  /** Offset that the next event will get. */
  next: number;
  /** Bytes held. */
  bytes: number;
  at: string;
}

/** A replica. */
export interface ReplicaRow {
  domain: string;
  home: string;
  /** End of the admission; null: the home's own replica. */
  expires_at: string | null;
  progress: ProgressRow;
}

/** Progress of a replica; all null: not sampled yet. */
export interface ProgressRow {
  vector: Record<string, number> | null;
  behind: number | null;
  at: string | null;
}

/** A sample of a gateway process, on `domain.admin`. */
export interface GatewaySampleData {
  /** Id of the gateway process, new at each start. */
  gateway: string;
  /** End of the interval. */
  at: string;
  /** Length of the interval, seconds. */
  interval_s: number;
  /** Successful requests and frames that published. */
  publishes: number;
  /** Events that clients published. */
  events_in: number;
  /** Bytes of these events, as stored. */
  bytes_in: number;
  /** Events written to readers, once for each reader. */
  deliveries: number;
  /** Bytes of these events. */
  bytes_out: number;
  /** Readings now: a session that reads three RPs counts as three. */
  readings: number;
  /** Operations refused. */
  refused: number;
  /** Sessions opened. */
  accepts: number;
  /** Sessions closed. */
  closes: number;
  /** Sessions open now. */
  sessions: number;
  /** Processor seconds used. */
  cpu_s: number;
  /** Resident memory now, bytes. */
  rss_bytes: number;
  /** Greatest delay of the event loop, milliseconds. */
  lag_ms: number;
  /** The RPs with most activity. */
  hot: HotRp[];
  /** From one gateway of the domain. */
  redis?: RedisLoad;
  /** Of the domain, from one gateway; counted every few seconds. */
  counts?: DomainCounts;
}

/** A peer, and what it may do. */
export interface Peer {
  /** The domain's name. */
  name: string;
  /** Address of the peer. */
  url: string;
  /** State of the peering at this domain. */
  state: "proposed" | "asked" | "active" | "suspended";
  /** Its stance, as it reported last; null: not received. */
  theirs: "proposes" | "approves" | "suspends" | "waits" | "leaves" | null;
  /** The kid of the domain's first key. */
  fingerprint: string;
  /** Whether the peer may send events. */
  push: boolean;
  /** Whether the peer may have replicas hosted here. */
  host: boolean;
  /** Whether the peer takes part in gossip. */
  gossip: boolean;
  lease: PeerLease;
  /** The fingerprint in groups of characters, to be read aloud. */
  fingerprint_shown: string;
  /** This domain's fingerprint, as the other administrator sees it. */
  own_fingerprint: string;
  own_fingerprint_shown: string;
  /** Computed from both fingerprints; the other domain shows the same number. */
  safety_number: string;
  events_per_s: number;
  bytes_per_s: number;
  requests_per_s: number;
  note: string;
  /** The last contact: a request or an answer of the peer; null: none. */
  heard_at: string | null;
  contact: PeerContact;
  /** Why the peer receives nothing; null: delivery works, or the peer is not active. */
  problem: PeerProblem | null;
  hello: PeerHello;
  /** State of sending events to the peer; null: it has never failed. */
  delivery: PeerDeliveryState | null;
  created_at: string;
  changed_at: string;
}

/** Times of the peer's last request, and of its last answer to a request of this domain, to the second; null: none
    known. */
export interface PeerContact {
  request_at: string | null;
  answer_at: string | null;
}

/** Reason why nothing arrives at a peer. */
export interface PeerProblem {
  kind: "unreachable" | "busy" | "refused" | "invalid" | "paused" | "not-taking";
  since: string | null;
  /** Time of the next attempt, or end of the peer's pause. */
  until: string | null;
  detail: string;
  /** What an administrator can do. */
  advice: string;
}

/** State of informing the peer about its state here. */
export interface PeerHello {
  failures: number;
  /** Why the last hello failed; null: it was delivered. */
  problem: string | null;
  /** Time of the next hello; null: none is due. */
  next_at: string | null;
}

/** The state of delivery to a peer. */
export interface PeerDeliveryState {
  /** Events that wait for the peer, as of some seconds ago; 0 while delivery works and none has waited for 2 s. */
  backlog: number;
  /** When the oldest of them was stored here; null: none. */
  oldest_at: string | null;
  /** Consecutive failures; 0 while delivery works. */
  failures: number;
  /** First of these, or since when nothing arrives although none fails. */
  first_failure_at: string | null;
  /** When delivery is retried, or a pause ends; null: all is well, or it is stopped. */
  next_try_at: string | null;
  /** Since when delivery is stopped until an administrator or the peer changes something. */
  stopped_at: string | null;
  failure: string | null;
  detail: string | null;
}

/** This domain's part in the overlay. */
export interface Overlay {
  domain: string;
  joined: boolean;
  /** A process of this domain runs the overlay now. */
  running: boolean;
  /** What keeps it from running, one sentence; null: nothing that is known. */
  problem: string | null;
  /** HERALD_OVERLAY. */
  mode: "peers" | "admitted" | "open";
  /** Null: this domain takes part in no overlay. */
  joined_at: string | null;
  /** Null for a founder. */
  sponsor: string | null;
  /** Of this domain's newest record. */
  version: number | null;
  /** Of this domain's identity key. */
  fingerprint: string | null;
  founders: OverlayFounder[];
  /** Domains in the directory, this one included. */
  domains: number;
  /** Links that stand. */
  links: number;
  /** The zones with the most domains. */
  zones: OverlayZone[];
  /** Sponsorships that this domain granted today (UTC). */
  sponsored_today: number;
  /** Sponsorships that this domain may grant in a day. */
  quota: number;
  /** Null: no process runs the overlay, or it has just begun. */
  picture: OverlayPicture | null;
}

/** A founder that this domain trusts. */
export interface OverlayFounder {
  name: string;
  /** Of its identity key. */
  fingerprint: string;
  /** The sponsor whose chain of sponsors ended there. */
  learned_from: string;
  added_at: string;
}

/** Domains of one zone. */
export interface OverlayZone {
  /** Empty: no zone is stated. */
  zone: string;
  domains: number;
}

/** Knowledge of the federation that the process of the overlay has. */
export interface OverlayPicture {
  at: string;
  whole: OverlayFigures;
  /** Of each zone; a zone of few domains is counted with others of the kind. */
  zones: OverlayFigures[];
  suspected: OverlaySuspicion[];
  health: OverlayHealth;
  /** Of the domains with a deed that counts, the worst first. */
  scores: OverlayScore[];
  /** This domain's own, as measured last; null: not yet. */
  load: OverlayLoad | null;
}

/** Figures of a zone, or of the whole federation. */
export interface OverlayFigures {
  /** Empty: all zones of few domains; null: the whole federation. */
  zone: string | null;
  /** Domains of the directory. */
  known: number;
  /** Those that are not suspected. */
  live: number;
  /** Live domains that state their load. */
  reporting: OverlayFigure;
  sums: OverlayLoadFigures;
  maxima: OverlayLoadFigures;
}

/** A number of many domains, with what it rests on. */
export interface OverlayFigure {
  value: number;
  /** Share of the live domains whose rows it rests on, from 0 to 1. */
  coverage: number;
  /** Age of the oldest of these rows. */
  oldest_s: number;
  /** Reporters and a sample of the domains contradict each other; the sample is used. */
  disputed: boolean;
}

/** Figures of each kind of load. */
export interface OverlayLoadFigures {
  sessions: OverlayFigure;
  events_in_per_s: OverlayFigure;
  events_out_per_s: OverlayFigure;
  bytes_per_s: OverlayFigure;
  backlog: OverlayFigure;
  links: OverlayFigure;
  busy_permille: OverlayFigure;
}

/** A domain that does not answer its monitors. */
export interface OverlaySuspicion {
  domain: string;
  since: string;
  /** Monitors whose accusations count now. */
  accusers: string[];
}

/** Degree to which this domain believes its own observations. */
export interface OverlayHealth {
  /** suspects-itself: so many links are silent that it waits longer before it drops one; accuses-nobody: so many of the domains that it observes are silent that it accuses none. */
  state: "well" | "suspects-itself" | "accuses-nobody";
  /** Factor by which it waits longer for silent links. */
  wait_factor: number;
  /** Domains that it observes as their monitor. */
  observed: number;
  /** Those of them that do not answer. */
  silent: number;
  /** Monitors that accuse this domain; it answers when they are enough to count. */
  accused_by: string[];
}

/** Score of a domain at the rendezvous points of a region, by own observation. */
export interface OverlayScore {
  peer: string;
  /** Id of the rendezvous points that the same domains share; empty: of the link itself. */
  region: string;
  /** From -10 to 1. */
  score: number;
  /** The fault that weighs most; empty: none. */
  reason: string;
  /** What follows from the score now. */
  effects: ("demoted" | "not-chosen" | "condemned")[];
  /** Seconds for which the domain gets no link here; 0: it may have one. */
  held_back_s: number;
}

/** The load of a domain, by its own word, clamped to its capacity class. */
export interface OverlayLoad {
  /** Connected readers. */
  sessions: number;
  /** Events accepted. */
  events_in_per_s: number;
  /** Events delivered. */
  events_out_per_s: number;
  /** Bytes of events delivered. */
  bytes_per_s: number;
  /** Events that wait to be forwarded to other domains. */
  backlog: number;
  /** Links of the overlay. */
  links: number;
  /** Thousandths of its processors in use by its gateways. */
  busy_permille: number;
}

/** Links of the overlay: those that stand first. */
export interface OverlayLinkList {
  items: OverlayLink[];
}

/** A link of the overlay, or one that ended lately. */
export interface OverlayLink {
  peer: string;
  up: boolean;
  /** This domain chose the link; else the other one did. */
  chosen: boolean;
  /** The other domain is an approved peer: outside all limits. */
  anchor: boolean;
  /** Why it was made, or ended. */
  reason: string;
  since: string;
  /** Of the other domain; empty: none is stated. */
  zone: string;
  /** Round-trip time of requests on it, smoothed; null: none was measured. */
  rtt_ms: number | null;
  /** The other domain does not answer its monitors. */
  suspected: boolean;
  /** By region; empty: no deed of the other domain counts. */
  scores: OverlayScore[];
}

/** A domain of the directory, as its own record states it. */
export interface OverlayDomain {
  name: string;
  /** Of its identity key. */
  fingerprint: string;
  /** Null: it only calls others. */
  url: string | null;
  zone: string;
  /** Class from 0 to 3, by its own word. */
  capacity: number;
  /** Null for a founder. */
  sponsor: string | null;
  version: number;
  issued_at: string;
  expires_at: string;
  /** False: its record has expired; only its key is remembered. */
  held: boolean;
  /** When it was proved to have signed contradictory statements. */
  convicted_at: string | null;
  /** A link with it stands. */
  linked: boolean;
  /** Round-trip time of requests to it, smoothed; null: none was measured lately. */
  rtt_ms: number | null;
  /** It does not answer its monitors. */
  suspected: boolean;
  /** Null: it states none, or is in another zone and not in its sample. */
  load: OverlayDomainLoad | null;
}

/** The last row of a domain's load. */
export interface OverlayDomainLoad {
  /** Connected readers. */
  sessions: number;
  /** Events accepted. */
  events_in_per_s: number;
  /** Events delivered. */
  events_out_per_s: number;
  /** Bytes of events delivered. */
  bytes_per_s: number;
  /** Events that wait to be forwarded to other domains. */
  backlog: number;
  /** Links of the overlay. */
  links: number;
  /** Thousandths of its processors in use by its gateways. */
  busy_permille: number;
  age_s: number;
}

/** A domain of the directory with all that this domain knows of it. */
export interface OverlayDomainExplanation {
  name: string;
  /** Of its identity key. */
  fingerprint: string;
  /** Null: it only calls others. */
  url: string | null;
  zone: string;
  /** Class from 0 to 3, by its own word. */
  capacity: number;
  /** Null for a founder. */
  sponsor: string | null;
  version: number;
  issued_at: string;
  expires_at: string;
  /** False: its record has expired; only its key is remembered. */
  held: boolean;
  /** When it was proved to have signed contradictory statements. */
  convicted_at: string | null;
  /** A link with it stands. */
  linked: boolean;
  /** Round-trip time of requests to it, smoothed; null: none was measured lately. */
  rtt_ms: number | null;
  /** It does not answer its monitors. */
  suspected: boolean;
  /** Null: it states none, or is in another zone and not in its sample. */
  load: OverlayDomainLoad | null;
  /** Its sponsor, that of the sponsor, and so on up to a founder. */
  sponsors: string[];
  /** The chain of sponsors ends with a founder that this domain trusts. */
  rooted: boolean;
  /** Its state as a peer of this domain; null: it is none. */
  peer: string | null;
  /** The link with it, or the last one; null: there was none lately. */
  link: OverlayLink | null;
  /** Null: it is not suspected. */
  suspicion: OverlaySuspicion | null;
  /** By region. */
  scores: OverlayScore[];
}

/** The path of one event, as far as it is known here. Paths are stated by the domains on them, and not proved. */
export interface EventPath {
  rp: string;
  feed: string;
  sequence: number;
  /** Origin of the event; null: its seal has left the history. */
  origin: string | null;
  /** Of the event in this domain's log; null: it is not in the history. */
  offset: number | null;
  /** Domains on the way here, the origin first, this one last; empty: it is not here. */
  route: string[];
  /** All known hops. */
  hops: EventHop[];
  /** Participants, and other domains on a route. */
  domains: PathDomain[];
  /** Whether other domains were asked. */
  asked: boolean;
}

/** A hop of an event between two domains. Not proved. */
export interface EventHop {
  source: string;
  target: string;
  /** Domains that state the hop; the target is the one that can know it. */
  stated_by: string[];
  /** When the target stored the event, by its clock; null: it did not say. */
  at: string | null;
}

/** A domain on the path of an event, or one that may hold it. */
export interface PathDomain {
  domain: string;
  /** As the overlay's directory states it; null: the directory has no such domain. */
  zone: string | null;
  /** Null: no participant any more. */
  role: "home" | "replica" | null;
  /** Link with this domain; null: none. */
  link: "eager" | "lazy" | "stopped" | null;
  /** Whether it has received the event; null: unknown here. */
  held: boolean | null;
  /** Domains on the way to it, the origin first, it last; null: unknown here. */
  route: string[] | null;
  /** When it stored the event, by its clock; null: unknown here. */
  stored_at: string | null;
  /** Whether it answered the question for the path; null: it was not asked. */
  answered: boolean | null;
  /** Why it did not answer, or its answer does not count; may be empty. */
  detail: string;
  /** Other domains that say it holds the event. */
  known_from: string[];
}

/** The map of the overlay at a place of `overlay.admin`. */
export interface MapSnapshot {
  /** Cursor of `overlay.admin` from which to continue. */
  cursor: string;
  state: MapState;
}

/** The map of the overlay. */
export interface MapState {
  /** Domains of the directory, by name. */
  domains: Record<string, MapDomain>;
  /** Links of this domain that stand, by the other domain. */
  links: Record<string, MapLink>;
  /** The last sample; null: none was taken lately. */
  figures: MapFigures | null;
}

/** A domain on the map, as its own record states it. */
export interface MapDomain {
  name: string;
  /** Null: it only calls others. */
  url: string | null;
  /** Empty: no zone is stated. */
  zone: string;
  /** Class from 0 to 3, by its own word. */
  capacity: number;
  /** Null for a founder. */
  sponsor: string | null;
  /** Of its identity key. */
  fingerprint: string;
  /** When it was proved to have signed contradictory statements. */
  convicted_at: string | null;
}

/** A link of this domain that stands. */
export interface MapLink {
  peer: string;
  /** This domain chose the link; else the other one did. */
  chosen: boolean;
  /** The other domain is an approved peer. */
  anchor: boolean;
  /** Why it was made. */
  reason: string;
  since: string;
}

/** A sample of the overlay. */
export interface MapFigures {
  /** End of the interval. */
  at: string;
  /** Length of the interval, seconds; 0: the first sample. */
  interval_s: number;
  /** A process of this domain ran the overlay. */
  running: boolean;
  /** How far this domain believes its own observations; null: no process ran. */
  health: string | null;
  /** Domains of the directory. */
  domains: number;
  /** Those that are not suspected; null: no process ran. */
  live: number | null;
  /** Live domains whose load was known; null: no process ran. */
  reporting: number | null;
  /** Share of the live domains that figures rest on; null: no process ran. */
  coverage: number | null;
  /** Suspected domains, the first of them. */
  suspected: string[];
  suspected_count: number;
  /** Links that this domain chose. */
  chosen: number;
  /** Links by which it was chosen: its in-degree. */
  accepted: number;
  /** Links with approved peers, of either kind. */
  anchors: number;
  /** Round-trip times of links. */
  links: MapLinkTime[];
  /** Median of these times; null: none was measured. */
  rtt_p50_ms: number | null;
  /** 90th percentile of these times; null: none was measured. */
  rtt_p90_ms: number | null;
  /** Events of other domains that arrived in the interval, each once. */
  events: number;
  /** Events that arrived again in the interval. */
  copies: number;
  /** Events that other domains acknowledged in the interval. */
  sent: number;
  /** Figures of each zone. */
  zones: MapZone[];
}

/** The round-trip time of a link. */
export interface MapLinkTime {
  peer: string;
  /** Null: not measured lately. */
  rtt_ms: number | null;
}

/** Figures of a zone. */
export interface MapZone {
  zone: string;
  /** Domains of the directory. */
  known: number;
  /** Those that are not suspected. */
  live: number;
  /** Live domains that state their load. */
  reporting: number;
  /** Share of the live domains that the sums rest on, from 0 to 1. */
  coverage: number;
  /** Age of the oldest row that they rest on. */
  oldest_s: number;
  /** Reporters and a sample contradict each other. */
  disputed: boolean;
  /** Connected readers. */
  sessions: number;
  /** Events accepted. */
  events_in_per_s: number;
  /** Events delivered. */
  events_out_per_s: number;
  /** Events that wait to be forwarded to other domains. */
  backlog: number;
  /** Links of the overlay. */
  links: number;
}
