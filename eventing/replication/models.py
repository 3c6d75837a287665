"""Tables of replication: links and admissions of replicas, ended RPs, the newest seals of the domain's own feeds, switches of routes."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from eventing.access.rules.tokens import IDENTITY_CHARS_MAX
from eventing.core.ids import RP_ID_CHARS
from eventing.core.merkle import HASH_BYTES
from eventing.core.modes import MODES
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
    again when the count differs. `term`: term of the RP's home as the peer last stated it; -1: it stated none, as
    software without terms of the home. `detail`: why a stopped link stopped.
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
    term = models.BigIntegerField(default=-1)
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


class HomeConsent(models.Model):
    """This domain's consent to become the home of an RP that another domain hands over, stored before it is sent.

    `payload` is the hand-over, `local` the members of the RP that only its home keeps. `until`: this domain holds its
    replica until then at least, as the present home may complete the hand-over.
    """

    rp = models.CharField(primary_key=True, max_length=RP_ID_CHARS)
    payload = models.BinaryField()
    local = models.JSONField(default=dict)
    until = models.DateTimeField()

    def __str__(self) -> str:
        return self.rp


class ElectorState(models.Model):
    """This domain as an elector of an RP's succession plan: what it has promised, stored before it is sent.

    Kept for ELECTOR_KEPT_S after the last promise when the replica ends: a domain that joins again must not vote twice.
    `plan_version`, `plan_term`, `plan_payload`: the newest version of the plan that it has endorsed; at the home, that it
    asks the electors to endorse; `plan_signature`: the home's, with which an elector completes it in the home's place.
    `home_term`: the term of the home that the others are about, as in overlay/succession.py: ElectorStanding, times in
    milliseconds of this domain's clock. `since_ms`: when the row was made, `used_ms`: its last promise.
    """

    rp = models.CharField(primary_key=True, max_length=RP_ID_CHARS)
    plan_version = models.BigIntegerField(default=0)
    plan_payload = models.BinaryField(default=bytes)
    home_term = models.BigIntegerField(default=0)
    term = models.BigIntegerField(default=0)
    voted = models.BinaryField(default=bytes)
    heard_ms = models.BigIntegerField(default=0)
    misses = models.BigIntegerField(default=0)
    probed_ms = models.BigIntegerField(default=0)
    stand_ms = models.BigIntegerField(default=0)
    lent = models.BigIntegerField(default=0)
    plan_term = models.BigIntegerField(default=0)
    plan_signature = models.BinaryField(default=bytes)
    since_ms = models.BigIntegerField(default=0)
    used_ms = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return self.rp


class HomeProof(models.Model):
    """Two hand-overs of an RP that cannot both be honest: their payloads and signatures are the proof.

    `digest` covers both in either order, so each proof is kept once; it remains when the RP has ended. `kept` is the domain that is the
    home by the precedence of records, `other` the one that the rival hand-over names; `accused` are the domains that signed against
    their promise, `detail` is one sentence for each. `hand_overs` are both,
    as they are shown (shapes.py: SignedHandOver).
    """

    digest = models.CharField(primary_key=True, max_length=64)
    rp = models.CharField(max_length=RP_ID_CHARS)
    term = models.BigIntegerField()
    kept = models.CharField(max_length=253)
    other = models.CharField(max_length=253)
    accused = models.JSONField(default=list)
    detail = models.JSONField(default=list)
    hand_overs = models.JSONField(default=list)
    carrier = models.CharField(max_length=253, blank=True, default="")
    found_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.rp} {self.term} {self.digest[:16]}"


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


class RoutesSwitch(models.Model):
    """Switch of the planner of routes, of an RP or of the domain (`rp` is empty). An empty mode is the domain's, or the setting."""

    rp = models.CharField(primary_key=True, max_length=RP_ID_CHARS)
    mode = models.CharField(max_length=8, blank=True, default="")
    changed_at = models.DateTimeField()
    changed_by = models.CharField(max_length=IDENTITY_CHARS_MAX)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(mode__in=["", *MODES]), name="routes_mode_is_known")]

    def __str__(self) -> str:
        return f"{self.rp or 'domain'} {self.mode}"
