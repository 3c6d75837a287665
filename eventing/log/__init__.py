"""The event log on Redis: append, read, trim. `scripts` has the layout, `control` serves synchronous callers,
`appender` and `reader` the hot path."""
