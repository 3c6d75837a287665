"""Reads. Callable from asynchronous code through `sync_to_async`."""
