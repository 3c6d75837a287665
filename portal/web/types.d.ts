/**
 * Types of the console that are not made of the domain's answers (those are in shapes.d.ts): events, the content of reports,
 * rules as descriptors state them, and what a picture keeps.
 */

import type { CloudEvent } from "../../client/js/herald.js";

/** An event of an administrative RP; what its data holds depends on its type. */
export interface AdminEvent extends CloudEvent {
  data: any;
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
