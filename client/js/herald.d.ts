/** Types of herald.js. What is said here is the contract; README.md shows it in use. */

/** A CloudEvent 1.0 in its JSON form. */
export interface CloudEvent {
  specversion: "1.0";
  id: string;
  source: string;
  type: string;
  time?: string;
  subject?: string;
  datacontenttype?: string;
  dataschema?: string;
  data?: unknown;
  data_base64?: string;
  [extension: string]: unknown;
}

/** An event and its place. Offsets of one epoch are contiguous. */
export interface Received {
  rp: string;
  epoch: string;
  offset: number;
  /** What to hold to continue after this event. Opaque. */
  cursor: string;
  event: CloudEvent;
  /** Durable subscriptions: everything up to this event is processed. An older item takes nothing back. Else does nothing. */
  ack(): Promise<void>;
}

/** The domain's promise, given once the event is as durable as the rendezvous point's `ack` asks. */
export interface Confirmation {
  epoch: string;
  /** Of the event; of the last one, if there were many. */
  offset: number;
  /** For many events: one for each, in order. */
  results?: { offset: number; duplicate: boolean }[];
}

/** Events that a reader asked for and cannot have: trimmed from the history, or of a numbering that has ended. */
export class Gap {
  readonly rp: string;
  /** The epoch that reading goes on in. */
  readonly epoch: string;
  /** First and last missing offset of `epoch`, both inclusive; `to < from` if none of it is missing. */
  readonly from: number;
  readonly to: number;
  /** The epoch the reader was in, if it ended: how much of it was missed is unknown. Else null. */
  readonly previousEpoch: string | null;
  /** What to hold to continue behind the gap. */
  readonly cursor: string;
  /** Where the rendezvous point has replicas, the first and last sequence lost of each feed. Empty elsewhere. */
  readonly feeds: Record<string, [number, number]>;
  /** How many events of `epoch` are known to be missing. */
  readonly missing: number;
  /** Durable subscriptions: everything up to this gap is processed. Else does nothing. */
  ack(): Promise<void>;
}

export type ConnectionState = "connecting" | "live" | "reconnecting" | "ended";
export type SubscriptionState = ConnectionState | "paused";

export interface StateDetail {
  /** ended: why; absent when the program closed it. */
  error?: HeraldError;
  /** reconnecting: the close code of the lost connection and what the domain said. */
  code?: number;
  reason?: string;
  /** reconnecting: milliseconds until the next attempt. */
  retryInMs?: number;
  /** live: whether nothing was lost since the place asked for. */
  recovered?: boolean;
  /** live: where reading begins; null where a gap that follows says it. */
  cursor?: string | null;
}

export interface Move {
  /** WebSocket URLs. */
  from: string;
  to: string;
  reason: string;
  /** It is the preferred one that is gone back to. */
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
  /** now (default), earliest, last (the last event and later ones), or a cursor. */
  from?: "now" | "earliest" | "last" | (string & {});
}

export class Subscription implements AsyncIterable<Received | Gap> {
  readonly state: SubscriptionState;
  /**
   * Where to continue, also in another client: behind the last item given out, to a callback or by an iterator. Null before
   * it was ever live.
   */
  readonly cursor: string | null;
  /** Durable subscriptions: everything up to `cursor` (default: the last item given out) is processed. */
  ack(cursor?: string | null): Promise<void>;
  /** Stop the flow and keep the place; nothing is buffered meanwhile. */
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
   * preferred one first: domains that have replicas of what is read and published.
   */
  url?: string | string[];
  /** A token; when it expires the client ends. Or one for each URL. Shown to the domains given, not to those learned. */
  token?: string | Record<string, string>;
  /**
   * Called before each connection; its token is used for that one. Any rejection is tried again later with backoff,
   * except a HeraldError, which ends the client, or with several URLs says that this one refuses. A function with a
   * parameter is given the URL, also of replicas that were learned; one without is asked for the given URLs alone.
   */
  getToken?: (url: string) => Promise<string | undefined>;
  /** The client goes on at another replica; `text` says it in words. */
  onMove?: (move: Move) => void;
  /** Which of the URLs that a domain names may be gone on at. Default: https ones, and http where the first given is http. */
  learnable?: (named: unknown) => string[];
  /** `source` of events that state none. Default: random, one for each client. */
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
}

/** One connection to a domain, opened when first needed; it reconnects by itself until closed or ended for good. */
export class Client {
  constructor(settings?: ClientSettings);
  /** Read a rendezvous point, named by id or name. One subscription at a rendezvous point for each client. */
  subscribe(rp: string, options?: SubscribeOptions): Subscription;
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
  /** Renew a lease, in seconds; the domain may shorten it and says so. */
  renew(target: string | { subscription: string }, leaseS: number): Promise<Record<string, unknown>>;
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
