"""What a process tells machines of itself: metrics, spans, log lines (docs/observability.md).

`totals` are plain numbers that the hot path counts in; `metrics` declares what is told; `folder` is where the processes
of a domain put it, so that any of them can answer for all; `exposition` joins and writes it; `tracing` makes spans where
an address for them is configured. Everything of eventing but `core` may use this; it uses `core` only.
"""
