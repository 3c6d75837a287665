"""Tables of replication."""

from __future__ import annotations

from eventing.replication.models.replica_link import ReplicaAdmission, ReplicaEnd, ReplicaLink
from eventing.replication.models.seal_head import SealHead

__all__ = [
    "ReplicaAdmission",
    "ReplicaEnd",
    "ReplicaLink",
    "SealHead",
]
