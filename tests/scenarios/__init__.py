"""Several domains as processes, behind proxies: what networks, operators and a lying peer do to them."""
