"""Links of this domain, and for a time those that ended, with the reason."""

from __future__ import annotations

from django.db import models


class OverlayLink(models.Model):
    """A link.

    Attributes:
        up: whether it stands.
        chosen: whether this domain chose it; else the peer did.
        anchor: whether the peer is an approved peer.
        reason: why it was made, or why it ended.
        since: when it was made, or ended.
    """

    peer = models.CharField(primary_key=True, max_length=253)
    up = models.BooleanField()
    chosen = models.BooleanField()
    anchor = models.BooleanField()
    reason = models.CharField(max_length=32)
    since = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["up", "since"], name="overlay_link_by_state")]

    def __str__(self) -> str:
        return self.peer
