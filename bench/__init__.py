"""Benchmarks: Herald side by side with nginx+nchan, nats-server and Channels. See docs/benchmarks.md."""
