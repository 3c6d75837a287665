// Made by `manage.py typescript` from the shapes of answers; `make check` keeps it current.

/** CloudEvents 1.0.2, structured; extension attributes are further members. */
export interface CloudEvent {
  specversion: "1.0";
  id: string;
  source: string;
  type: string;
  datacontenttype?: string;
  dataschema?: string;
  subject?: string;
  time?: string;
  /** Any JSON value, stored unchanged. */
  data?: unknown;
  data_base64?: string;
}

/** One event: with id, source, duplicate. A batch: with results, in its order. */
export interface Published {
  /** Life of the log's numbering; another epoch is another log. */
  epoch: string;
  /** Offset of the last event; 0 before the first. */
  offset: number;
  /** Cursor to continue from; opaque. */
  cursor: string;
  id?: string;
  source?: string;
  /** Already known by (source, id); `offset` is that of the first. */
  duplicate?: boolean;
  results?: PublishedResult[];
}

/** Position of one event of a batch. */
export interface PublishedResult {
  offset: number;
  duplicate: boolean;
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
