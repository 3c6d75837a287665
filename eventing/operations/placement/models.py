"""Tables of placement: bounds and switches, decisions, replicas that were placed, invitations received, the planner's state."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from eventing.access.rules.tokens import IDENTITY_CHARS_MAX
from eventing.core.modes import MODES
from eventing.operations.placement.rules.decisions import OPEN, STATES
from eventing.rps.models import DOMAIN_CHARS_MAX

RP_CHARS_MAX = 64
WHY_CHARS_MAX = 500


class PlacementBounds(models.Model):
    """Switch and bounds of an RP, or of the domain (`rp` is empty). Empty or null members are the domain's, or the defaults."""

    rp = models.CharField(primary_key=True, max_length=RP_CHARS_MAX)
    mode = models.CharField(max_length=8, blank=True, default="")
    replicas_max = models.IntegerField(null=True)
    histories = models.IntegerField(null=True)
    pinned = models.JSONField(default=list)
    excluded = models.JSONField(default=list)
    version = models.IntegerField(default=0)
    changed_at = models.DateTimeField()
    changed_by = models.CharField(max_length=IDENTITY_CHARS_MAX)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(mode__in=["", *MODES]), name="placement_mode_is_known")]

    def __str__(self) -> str:
        return f"{self.rp or 'domain'} {self.mode}"


class PlacementDecision(models.Model):
    """A step of the planner, or of a person, and what has become of it.

    `progress`: by domain, `state` and `detail`. `claimed_until`: while a task carries it out.
    """

    id = models.BigAutoField(primary_key=True)
    rp = models.CharField(max_length=RP_CHARS_MAX)
    state = models.CharField(max_length=10)
    reason = models.CharField(max_length=16)
    why = models.CharField(max_length=WHY_CHARS_MAX)
    inputs = models.JSONField(default=dict)
    adds = models.JSONField(default=list)
    retires = models.JSONField(default=list)
    progress = models.JSONField(default=dict)
    decided_by = models.CharField(max_length=IDENTITY_CHARS_MAX, blank=True, default="")
    detail = models.CharField(max_length=WHY_CHARS_MAX, blank=True, default="")
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    claimed_until = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=list(STATES)), name="placement_decision_state_is_known"),
            models.UniqueConstraint(
                fields=["rp"], condition=Q(state__in=list(OPEN)), name="placement_decision_is_open_once"
            ),
        ]
        indexes = [
            models.Index(fields=["rp", "-id"], name="placement_decision_of_rp"),
            models.Index(fields=["created_at"], name="placement_decision_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.rp} {self.state}"


class PlacedReplicaRow(models.Model):
    """A replica that a decision placed. `vector`: the home's when it was invited; it counts once it has reached that. From then on
    `vector` is the home's at `marked_at`, which it must reach in time (rules/freshness.py).
    """

    id = models.BigAutoField(primary_key=True)
    rp = models.CharField(max_length=RP_CHARS_MAX)
    domain = models.CharField(max_length=DOMAIN_CHARS_MAX)
    decision = models.BigIntegerField()
    vector = models.JSONField(default=dict)
    invited_at = models.DateTimeField()
    counted_at = models.DateTimeField(null=True)
    marked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["rp", "domain"], name="placed_replica_is_one")]

    def __str__(self) -> str:
        return f"{self.rp} at {self.domain}"


class InvitationReceived(models.Model):
    """An invitation of another home, and the answer; `reason` is empty where it was accepted."""

    id = models.BigAutoField(primary_key=True)
    home = models.CharField(max_length=DOMAIN_CHARS_MAX)
    rp = models.CharField(max_length=RP_CHARS_MAX)
    at = models.DateTimeField()
    reason = models.CharField(max_length=16, blank=True, default="")
    detail = models.CharField(max_length=WHY_CHARS_MAX, blank=True, default="")

    class Meta:
        indexes = [
            models.Index(fields=["home", "at"], name="invitation_of_home"),
            models.Index(fields=["at"], name="invitation_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.rp} from {self.home} {self.reason or 'accepted'}"


class StandingPolicy(models.Model):
    """The standing policy for invitations (rules/invitations.py): one row, or none for the default."""

    id = models.IntegerField(primary_key=True)
    policy = models.JSONField()
    version = models.IntegerField(default=1)
    changed_at = models.DateTimeField()
    changed_by = models.CharField(max_length=IDENTITY_CHARS_MAX)

    def __str__(self) -> str:
        return f"version {self.version}"


class PlannerRecord(models.Model):
    """The planner's state between two observations: one row. `delays`: by domain, milliseconds and when they were measured."""

    id = models.IntegerField(primary_key=True)
    state = models.JSONField()
    delays = models.JSONField(default=dict)
    shortfalls = models.JSONField(default=list)
    seen = models.JSONField(default=dict)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"at {self.at}"
