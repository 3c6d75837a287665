/**
 * What the domain answers, and what its administrative events carry, as far as the console reads it. The states are those of
 * admin_rp/catalogue.py; docs/administrative-events.md tells every member.
 */

import type { CloudEvent } from "../../client/js/herald.js";

/** An event of an administrative RP; what its data holds depends on its type. */
export interface AdminEvent extends CloudEvent {
  data: any;
}

export interface DomainState {
  domain: { name: string; version: string };
  counts: { rps: number; subscriptions: number; reserved_bytes: number; quota_bytes: number };
  redis: { used_bytes: number; ops_s: number };
  gateways: Record<string, Sample>;
  peers: Record<string, Peer>;
  alarms: Record<string, Alarm>;
  watches: Record<string, { id: string; rp: string | null; kind: string; severity: string }>;
  quarantines: Record<string, Quarantine>;
  misbehaviour: Record<string, Misbehaviour>;
  reports: Record<string, ReportRun>;
  recent_rps: Record<string, Omit<Rp, "lease">>;
}

export interface RpState {
  rp: Rp | null;
  subscriptions: Record<string, Subscription>;
  load: Record<string, RpSample>;
  history: { epoch: string; first: number; next: number; bytes: number; at: string } | null;
  replicas: Record<string, Replica>;
  alarms: Record<string, Alarm>;
  watches: Record<string, { id: string; kind: string; severity: string }>;
}

export interface History {
  max_events: number;
  max_bytes: number;
  max_age_s: number | null;
}

export interface Lease {
  asked_s: number | null;
  granted_s: number;
  expires_at: string;
}

export interface Rp {
  id: string;
  name: string | null;
  title: string;
  creator: string;
  home: string;
  version: number;
  ack: string;
  history: History;
  lease?: Lease;
  created_at: string;
  paused: { at: string; by: string; reason: string } | null;
}

export interface Subscription {
  id: string;
  at: string;
  owner: string;
  version: number;
  history: History;
  lag: { events: number | null; lost: number | null; oldest_at: string | null; at: string | null };
}

export interface Replica {
  domain: string;
  home: string;
  expires_at: string | null;
  progress: { vector: Record<string, number> | null; behind: number | null; at: string | null };
}

/** What a gateway did at one RP in `interval_s` seconds. */
export interface RpSample {
  gateway: string;
  at: string;
  interval_s: number;
  publishes: number;
  events_in: number;
  bytes_in: number;
  deliveries: number;
  bytes_out: number;
  readings: number;
}

/** What a gateway did in `interval_s` seconds. */
export interface Sample extends RpSample {
  refused: number;
  sessions: number;
  cpu_s: number;
  rss_bytes: number;
  lag_ms: number;
  hot: HotRp[];
  counts?: { rps: number; subscriptions: number; reserved_bytes: number; quota_bytes: number };
}

export interface HotRp {
  rp: string;
  events_in: number;
  deliveries: number;
  readings: number;
}

export interface Alarm {
  id: string;
  rule: string;
  kind: string;
  rp: string | null;
  about: string;
  severity: string;
  detail: string;
  values: { name: string; value: number; limit: number; unit: string }[];
  link: string;
  since: string;
  raised_at: string;
  changed_at: string;
  acknowledged: { at: string; by: string; note: string } | null;
  lasting: boolean;
}

export interface Peer {
  name: string;
  url: string;
  state: "active" | "asked" | "proposed" | "suspended";
  theirs: string | null;
  fingerprint: string;
  push: boolean;
  host: boolean;
  gossip: boolean;
  lease: { granted_s: number; expires_at: string };
  delivery: Delivery;
  traffic: Traffic;
}

/** How delivery to a peer goes. */
export interface Delivery {
  backlog: number;
  oldest_at: string | null;
  failures: number;
  class: string | null;
  detail: string;
  first_failure_at: string | null;
  next_try_at: string | null;
  stopped_at: string | null;
}

export interface Traffic {
  sent: number;
  taken: number;
  copies: number;
  requests: number;
  interval_s: number;
  at: string | null;
}

/** GET /api/v1/peers/NAME, as far as the forms about a peer show it. */
export interface PeerDetail {
  name: string;
  url: string;
  note: string;
  fingerprint: string;
  events_per_s: number;
  bytes_per_s: number;
  requests_per_s: number;
}

export interface Quarantine {
  origin: string;
  why: string;
  since: string;
}

export interface Misbehaviour {
  kind: string;
  carrier: string;
  origin: string;
  count: number;
  rp: string;
  detail: string;
  last_at: string;
}

export interface ReportRun {
  id: string;
  job: string;
  from: string;
  to: string;
  cadence: "hourly" | "daily" | "asked";
  by: string;
  state: string;
  stage: string;
  done: number;
  total: number;
  reason: string;
  next_try_at: string | null;
  started_at: string | null;
  ended_at: string | null;
}

/** GET /api/v1/reports/ID/report.json. */
export interface Report {
  report: string;
  headline: Record<string, { value: unknown; unit: string }>;
  tops: Record<string, ReportTable>;
  [part: string]: any;
}

export interface ReportTable {
  columns: { name: string; unit: string }[];
  rows: unknown[][];
}

/** A watch rule of an RP as its descriptor states it: its kind names the member that holds its limits. */
export interface WatchRule {
  severity: string;
  for_s: number;
  [kind: string]: any;
}

/** An audience of an RP as its descriptor states it. */
export interface Audience {
  label: string;
  at_least: number;
  publishing: "refuse" | "flag";
  claims?: Record<string, unknown>;
  issuer?: string;
}

/** An event that a lane of the timescale holds. `at`: when it was stored, in Unix milliseconds; `exact` once the domain said so. */
export interface LaneEvent {
  offset: number;
  at: number;
  type?: string;
  size?: number;
  feed?: string | null;
  exact?: boolean;
}
