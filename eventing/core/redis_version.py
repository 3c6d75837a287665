"""The oldest Redis that Herald runs on."""

from __future__ import annotations

VERSION_MIN = (6, 2)

CLUSTER_VERSION_MIN = (7, 2)
"""The oldest version of the nodes of a cluster: sharded notifications (7.0), WAITAOF (7.2). Valkey 8 states 7.2.4."""
