"""Whole domains as processes, with control over them and the network between them: for the demo, and for tests."""
