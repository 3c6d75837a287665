"""Telemetry of a process: metrics, spans, log lines (docs/observability.md).

`totals` are plain numbers that the hot path counts in; `metrics` declares all metrics; `folder` holds the metrics of
all processes of a domain, so that any of them can answer for all; `exposition` joins and formats them; `tracing` makes
spans if an address for them is configured. All of eventing but `core` may use this package, which uses `core` only.
"""
