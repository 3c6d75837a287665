"""The event log on Redis: append, read, trim. See `scripts` for the layout, `control` for synchronous callers,
`appender` and `reader` for the hot path."""
