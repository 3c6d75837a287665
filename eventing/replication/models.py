"""Tables of replication: links and admissions of replicas, ended RPs, the newest seals of the domain's own feeds."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from eventing.core.ids import RP_ID_CHARS
from eventing.core.merkle import HASH_BYTES
from eventing.rps.models import DOMAIN_CHARS_MAX, RendezvousPoint
from eventing.sql.columns import LeaseColumns

URL_CHARS_MAX = 255
DETAIL_CHARS_MAX = 255


class ReplicaAdmission(models.Model):
    """The home's latest signed statement that a domain participates in an RP; at a replica also the own one.

    `statement` is the signed admission (rps/rules/statements.py) as kept and passed on; the other columns are its
    content.
    `asked_at_ms`, at the home: when the last answered join was signed, so that an older one is not answered again.
    `tell_at`, `tell_until`: of a withdrawn admission whose domain is to be notified, when next and for how long
    (replication/services/withdrawals.py).
    """

    rp = models.ForeignKey(RendezvousPoint, on_delete=models.CASCADE, related_name="admissions", db_index=False)
    domain = models.CharField(max_length=DOMAIN_CHARS_MAX)
    url = models.CharField(max_length=URL_CHARS_MAX, blank=True, default="")
    statement = models.BinaryField()
    issued_at_ms = models.BigIntegerField()
    asked_at_ms = models.BigIntegerField(default=0)
    expires_at = models.DateTimeField()
    revoked = models.BooleanField(default=False)
    tell_at = models.DateTimeField(null=True)
    tell_until = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["rp", "domain"], name="replica_admission_is_one")]
        indexes = [
            models.Index(fields=["expires_at"], name="replica_admission_by_end"),
            models.Index(fields=["tell_at"], name="replica_admission_to_tell", condition=Q(tell_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.domain} at {self.rp_id}"


class ReplicaLink(LeaseColumns):
    """A link: the exchange of one RP's events with one peer. Its lease is renewed while both participate and are peers.

    `told` is the RP's count of statements (`RendezvousPoint.statements`) that the peer has acknowledged; they are sent
    again when the count differs. `detail`: why a stopped link stopped.
    """

    class State(models.TextChoices):
        """State of the link: events are sent or not (state graph: rps/rules/statements.py)."""

        LIVE = "live"
        STOPPED = "stopped"

    rp = models.ForeignKey(RendezvousPoint, on_delete=models.CASCADE, related_name="links", db_index=False)
    peer = models.CharField(max_length=DOMAIN_CHARS_MAX)
    state = models.CharField(max_length=8, choices=State.choices, default=State.LIVE)
    detail = models.CharField(max_length=DETAIL_CHARS_MAX, blank=True, default="")
    told = models.BigIntegerField(default=-1)
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["rp", "peer"], name="replica_link_is_one"),
            models.CheckConstraint(condition=Q(state__in=["live", "stopped"]), name="replica_link_state_is_known"),
        ]
        indexes = [
            models.Index(fields=["peer", "rp"], name="replica_link_of_peer"),
            models.Index(fields=["expires_at"], name="replica_link_by_end"),
        ]

    def __str__(self) -> str:
        return f"{self.rp_id} with {self.peer}"


class ReplicaEnd(models.Model):
    """A participation that ended here recently: where its clients find the RP now, and which peers are to be notified.

    `pending` are names of peers to notify: of a deleted RP all of them, by `statement`, the home's last descriptor; of
    one that was left any of them, by a leave that is signed when it is sent. Domains that are never reached learn it
    from leases that are not renewed. `urls` are the addresses of other replicas.
    """

    class Reason(models.TextChoices):
        """Reason of the end."""

        DELETED = "deleted"
        LEFT = "left"
        LAPSED = "lapsed"

    rp = models.CharField(primary_key=True, max_length=RP_ID_CHARS)
    home = models.CharField(max_length=DOMAIN_CHARS_MAX)
    name = models.CharField(max_length=255, blank=True, default="")
    reason = models.CharField(max_length=8, choices=Reason.choices)
    urls = models.JSONField(default=list)
    statement = models.BinaryField(null=True)
    pending = models.JSONField(default=list)
    tries = models.IntegerField(default=0)
    next_try_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    until = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(reason__in=["deleted", "left", "lapsed"]), name="replica_end_reason_is_known"
            )
        ]
        indexes = [
            models.Index(fields=["until"], name="replica_end_by_end"),
            models.Index(fields=["next_try_at"], name="replica_end_to_tell"),
        ]

    def __str__(self) -> str:
        return f"{self.rp} {self.reason}"


class SealHead(models.Model):
    """Newest seal of the feed of one RP in one epoch. Written before the run that it covers leaves the domain.

    Rows of one RP are ordered by `id`: the newest is the epoch in use; an older epoch must never return. `statement` is
    the seal (MessagePack of core/signing.py: Signed), `digest` the name by which the next seal refers to it, `leaves`
    its run's leaf hashes: with them a seal that a crash kept out of the log is stored there later.
    """

    id = models.BigAutoField(primary_key=True)
    rp = models.CharField(max_length=64)
    epoch = models.CharField(max_length=26)
    last = models.BigIntegerField()
    digest = models.BinaryField(max_length=HASH_BYTES)
    statement = models.BinaryField()
    leaves = models.BinaryField()
    sealed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["rp", "epoch"], name="seal_head_is_one"),
            models.CheckConstraint(condition=Q(last__gte=1), name="seal_head_covers_something"),
        ]

    def __str__(self) -> str:
        return f"{self.rp} {self.epoch}:{self.last}"
