/** Types of herald.js. These types are the contract; README.md shows their use. */

import type { CloudEvent as CloudEventMembers, Lease, Published } from "./answers.js";

/** A CloudEvent 1.0 in its JSON form. */
export interface CloudEvent extends CloudEventMembers {
  [extension: string]: unknown;
}

/** An event and its place. Offsets of one epoch are contiguous. */
export interface Received {
  rp: string;
  epoch: string;
  offset: number;
  /** The opaque cursor to continue after this event. */
  cursor: string;
  event: CloudEvent;
  /** Durable subscriptions: acknowledge everything up to this event. An older item changes nothing. Else no effect. */
  ack(): Promise<void>;
}

/** The domain's confirmation, sent once the event is as durable as the rendezvous point's `ack` requires. */
export type Confirmation = Pick<Published, "epoch" | "offset" | "results">;

/** Events that a reader requested and cannot get: trimmed from the history, or of an ended epoch. */
export class Gap {
  readonly rp: string;
  /** The epoch in which reading continues. */
  readonly epoch: string;
  /** First and last missing offset of `epoch`, both inclusive; `to < from` if none of it is missing. */
  readonly from: number;
  readonly to: number;
  /** The reader's former epoch, if it ended: how many of its events were missed is unknown. Else null. */
  readonly previousEpoch: string | null;
  /** The cursor to continue behind the gap. */
  readonly cursor: string;
  /** At a rendezvous point with replicas, the first and last lost sequence of each feed. Empty elsewhere. */
  readonly feeds: Record<string, [number, number]>;
  /** Events that the reader was given and that the domain has lost since, offsets both inclusive. Null: none was. */
  readonly rewound: { epoch: string; from: number; to: number } | null;
  /** How many events of `epoch` are known to be missing. */
  readonly missing: number;
  /** Durable subscriptions: acknowledge everything up to this gap. Else no effect. */
  ack(): Promise<void>;
}

export type ConnectionState = "connecting" | "live" | "reconnecting" | "ended";
export type SubscriptionState = ConnectionState | "paused";

export interface StateDetail {
  /** ended: the error; absent when the program closed it. */
  error?: HeraldError;
  /** reconnecting: the close code of the lost connection and the domain's reason. */
  code?: number;
  reason?: string;
  /** reconnecting: milliseconds until the next attempt. */
  retryInMs?: number;
  /** live: whether nothing was lost since the requested place. */
  recovered?: boolean;
  /** live: where reading begins; null where a following gap has it. */
  cursor?: string | null;
}

export interface Move {
  /** WebSocket URLs. */
  from: string;
  to: string;
  reason: string;
  /** Whether this is a return to the preferred replica. */
  back: boolean;
  text: string;
}

export interface ReaderOptions {
  /** Called for each event, in order. Without it the subscription is read as an async iterator. */
  onEvent?: (event: CloudEvent, received: Received) => void;
  onGap?: (gap: Gap) => void;
  onState?: (state: SubscriptionState, detail: StateDetail) => void;
}

export interface SubscribeOptions extends ReaderOptions {
  /**
   * now (default), earliest, last (the last event and later ones), a cursor, or a time: a Date, or
   * `time:2026-11-24T02:50:00Z`, for the first event that the domain stored then or later.
   */
  from?: "now" | "earliest" | "last" | Date | (string & {});
}

export interface DurableOptions {
  /** Seconds to live unless used or renewed; the domain may grant less. Default: the domain's, a week. */
  leaseS?: number;
  /** Events to keep for later reading, within the rendezvous point's own bounds. */
  history?: { maxEvents?: number; maxBytes?: number; maxAgeS?: number };
  /** Where reading begins: now (default), earliest, last or a cursor. */
  from?: "now" | "earliest" | "last" | (string & {});
  signal?: AbortSignal;
}

/** The domain's statement of a durable subscription; docs/protocol.md lists all members. */
export interface DurableSubscription {
  id: string;
  /** Id of its rendezvous point. */
  rp: string;
  lease: Lease;
  [member: string]: unknown;
}

export class Subscription implements AsyncIterable<Received | Gap> {
  readonly state: SubscriptionState;
  /**
   * The cursor to continue, also in another client: after the last item handed out, to a callback or iterator. Null before
   * it was ever live.
   */
  readonly cursor: string | null;
  /** Durable subscriptions: acknowledge everything up to `cursor` (default: the last item handed out). */
  ack(cursor?: string | null): Promise<void>;
  /** Pause the flow and keep the position; nothing is queued meanwhile. */
  pause(): void;
  /** Continue from the log where `pause` stopped. */
  resume(): void;
  close(): void;
  /** Ends when closed; throws when ended otherwise. Leaving the loop closes the subscription. */
  [Symbol.asyncIterator](): AsyncIterator<Received | Gap>;
}

export interface ClientSettings {
  /**
   * The domain's address, https://herald.example; or its WebSocket URL. Default: the page's own origin. Or several, the
   * preferred one first: domains with replicas of what is read and published.
   */
  url?: string | string[];
  /** A token; when it expires the client ends. Or one for each URL. Sent to the given domains, not to learned ones. */
  token?: string | Record<string, string>;
  /**
   * Called before each connection, for its token. Any rejection is retried with backoff,
   * except a HeraldError, which ends the client, or with several URLs counts as a refusal by this one. A function with a
   * parameter gets the URL, also of learned replicas; one without is called for the given URLs only.
   */
  getToken?: (url: string) => Promise<string | undefined>;
  /** Called when the client moves to another replica; `text` describes the move. */
  onMove?: (move: Move) => void;
  /** Returns the usable ones of URLs that a domain names. Default: https ones, and http if the first given is http. */
  learnable?: (named: unknown) => string[];
  /**
   * Whether the client measures the domains that a gateway names as alternatives, moves to a clearly better one, and
   * follows redirects; only to domains at which its token is valid as well. Default: true.
   */
  bestServer?: boolean;
  /** `source` of events without one. Default: random, one for each client. */
  source?: string;
  /** The state of the connection as a whole. */
  onState?: (state: ConnectionState, detail: StateDetail) => void;
  /** The WebSocket class; default: the global one. */
  WebSocket?: typeof WebSocket;
  /** Times in milliseconds and bounds; see DEFAULTS in session.js. */
  backoffMinMs?: number;
  backoffMaxMs?: number;
  stableMs?: number;
  connectMs?: number;
  silenceMs?: number;
  pongMs?: number;
  requestsMax?: number;
  firstMeasureMs?: number;
  confirmMs?: number;
  measureMs?: number;
}

/** One connection to a domain, opened when first needed; it reconnects by itself until closed or ended for good. */
export class Client {
  constructor(settings?: ClientSettings);
  /** Read a rendezvous point, named by id or name. One subscription at a rendezvous point for each client. */
  subscribe(rp: string, options?: SubscribeOptions): Subscription;
  /**
   * Create a durable subscription: it outlives this program, and `attach` reads it by its `id`. Made once, however often the
   * request has to be repeated. A page of another site than the domain's cannot: browsers do not let it.
   */
  createSubscription(rp: string, options?: DurableOptions): Promise<DurableSubscription>;
  /** End a durable subscription; its unread events are lost. */
  deleteSubscription(subscription: string, options?: { signal?: AbortSignal }): Promise<void>;
  /** Read a durable subscription from its last acknowledged event on. */
  attach(subscription: string, options?: ReaderOptions): Subscription;
  /**
   * Publish a CloudEvent (an object with `specversion`) or any JSON value, text or bytes as the data of a new one.
   * Unconfirmed events are sent again after each reconnection with the same id, and stored once.
   * Rejects with Problem (refused), Closed or ClientClosed, or the signal's reason; after the latter two it is unknown
   * whether the event was stored.
   */
  publish(rp: string, dataOrEvent: unknown, options?: { signal?: AbortSignal }): Promise<Confirmation>;
  publishAll(rp: string, items: unknown[], options?: { signal?: AbortSignal }): Promise<Confirmation>;
  /** Renew a lease, in seconds; the domain may grant less, as the answer states. */
  renew(target: string | { subscription: string }, leaseS: number): Promise<{ lease: Lease }>;
  close(): void;
}

export class HeraldError extends Error {}

/** The domain refused an operation. */
export class Problem extends HeraldError {
  readonly type: string;
  /** The stable last part of `type`, such as not-found. */
  readonly code: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly retryAfterS: number | null;
  readonly passing: boolean;
  readonly document: Record<string, unknown>;
}

/** The domain closed the connection for good. */
export class Closed extends HeraldError {
  readonly code: number;
  readonly reason: string;
}

/** The program itself closed the client. */
export class ClientClosed extends HeraldError {}
