"""Log output of a process: lines, JSON lines, request ids."""
