"""Tables of rendezvous points (descriptor, lease, reserved history) and of the domain's watch rules."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from eventing.access.rules.tokens import IDENTITY_CHARS_MAX
from eventing.core.ids import RP_ID_CHARS
from eventing.core.names import NAME_CHARS_MAX
from eventing.rps.rules.entity_tags import entity_tag
from eventing.rps.rules.home_terms import HomeRecord, HomeTerm, last_term, record_unpacked
from eventing.sql.columns import HistoryColumns, LeaseColumns, lease_and_history_constraints, lease_indexes

TITLE_CHARS_MAX = 255
REASON_CHARS_MAX = 255
ACK_CHARS_MAX = 16
DOMAIN_CHARS_MAX = 253  # a domain's name is a host name


class RendezvousPoint(LeaseColumns, HistoryColumns):
    """One RP of this domain, or its replica of another domain's RP. `id` is the hash of `genesis`; `version` increases
    with every change.

    For a replica: `home` is the domain that owns the RP (empty: this one), `via` the peer through which this domain
    joined, `creator` the principal that requested the replica; the home granted the lease and determines name, title,
    version, policy and genesis. `descriptor` is the home's latest signed statement (rps/rules/statements.py), also for
    own RPs; None for RPs older than signed descriptors. `property_statement` is the home's latest statement of
    properties beyond the descriptor, which `reliability` (target, 0 to 1; None for none) was read from; None for none. `term` and `homes` are the term of the home
    and the verified record of hand-overs and succession plans (rps/rules/home_terms.py; None: never moved, no plan).
    `history_asked` is the history requested for a replica, the
    bounds the granted one; `renew_at` is the time of the next renewal of its lease. `statements` counts changes of the
    descriptor and of the admissions. `paused_at`: since when this domain refuses publishes here, None while not paused;
    `paused_by` an identity, `paused_reason` the explanation to publishers. The pause is local: neither signed nor sent
    to replicas. So are `audience` and `watch` (rps/rules/audience.py, rps/rules/watches.py); `watched_at` is the time
    of their last change, None without any. `renew_on_use`: whether use renews the lease
    (subscriptions/services/lease_use.py); for own RPs only, and not signed.
    """

    lease_of = "rp"

    id = models.CharField(primary_key=True, max_length=RP_ID_CHARS)
    genesis = models.JSONField()
    name = models.CharField(max_length=NAME_CHARS_MAX, unique=True, null=True)  # noqa: DJ001 - no name is not an empty one
    title = models.CharField(max_length=TITLE_CHARS_MAX, blank=True, default="")
    creator = models.CharField(max_length=IDENTITY_CHARS_MAX)
    version = models.BigIntegerField(default=1)
    policy = models.JSONField()
    ack = models.CharField(max_length=ACK_CHARS_MAX)
    properties = models.JSONField(default=dict)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    trimmed_at = models.DateTimeField()
    home = models.CharField(max_length=DOMAIN_CHARS_MAX, blank=True, default="")
    via = models.CharField(max_length=DOMAIN_CHARS_MAX, blank=True, default="")
    descriptor = models.BinaryField(null=True)
    term = models.BigIntegerField(default=0)
    homes = models.BinaryField(null=True)
    reliability = models.FloatField(null=True)
    property_statement = models.BinaryField(null=True)
    history_asked = models.JSONField(default=dict)
    renew_at = models.DateTimeField(null=True)
    statements = models.BigIntegerField(default=0)
    paused_at = models.DateTimeField(null=True)
    paused_by = models.CharField(max_length=IDENTITY_CHARS_MAX, blank=True, default="")
    paused_reason = models.CharField(max_length=REASON_CHARS_MAX, blank=True, default="")
    audience = models.JSONField(default=list)
    watch = models.JSONField(default=list)
    watched_at = models.DateTimeField(null=True)
    renew_on_use = models.BooleanField(default=True)

    class Meta:
        constraints = [
            *lease_and_history_constraints("rp"),
            models.CheckConstraint(condition=Q(version__gte=1), name="rp_version_counts"),
            models.CheckConstraint(
                condition=Q(name=None) | (Q(name__startswith="/") & Q(name__endswith="/")), name="rp_name_is_path"
            ),
            models.CheckConstraint(
                condition=Q(paused_at__isnull=False) | Q(paused_by="", paused_reason=""), name="rp_paused_or_not"
            ),
        ]
        indexes = [
            *lease_indexes("rp"),
            models.Index(fields=["created_at", "id"], name="rp_by_creation"),
            models.Index(fields=["trimmed_at"], name="rp_by_trimming"),
            models.Index(fields=["max_bytes"], name="rp_reserved_bytes"),  # the quota's sum reads only the index
            models.Index(fields=["creator", "max_bytes"], name="rp_of_creator"),  # the creator's sum too
            models.Index(fields=["home"], condition=~Q(home=""), name="rp_replicas"),
            models.Index(fields=["renew_at"], condition=~Q(renew_at=None), name="rp_to_renew"),
            models.Index(fields=["expires_at", "id"], condition=~Q(home=""), name="rp_replicas_by_end"),
            models.Index(fields=["id"], condition=Q(name=None), name="rp_nameless"),
            models.Index(fields=["id"], condition=~Q(reliability=None), name="rp_with_target"),
            models.Index(fields=["id"], condition=~Q(homes=None), name="rp_with_homes"),
            models.Index(fields=["watched_at"], condition=~Q(watched_at=None), name="rp_watched"),
            models.Index(fields=["title", "name", "id"], name="rp_to_search"),  # a search reads only the index
        ]

    def __str__(self) -> str:
        return self.name or self.id

    @property
    def lease_at(self) -> str:
        """The RP's own id."""
        return self.id

    @property
    def home_record(self) -> HomeRecord:
        """The record of hand-overs and succession plans."""
        return record_unpacked(self.homes)

    @property
    def home_term(self) -> HomeTerm:
        """The present term: its number, home and the kid of the home's first key."""
        return last_term(self.genesis, self.home_record)

    @property
    def authority(self) -> str:
        """The domain that created the RP: names are under its authority, and `domain` in the policy means its people."""
        return str(self.genesis.get("domain", self.home))

    @property
    def entity_tag(self) -> str:
        """The entity tag, without quotes; changes with the version and with the local members."""
        return entity_tag(self.version, self.audience, self.watch)

    @property
    def renewed_by_use(self) -> bool:
        """True unless switched off, and False for a replica: its lease is its admission, which its domain renews automatically."""
        return self.renew_on_use and not self.home


class DomainWatches(models.Model):
    """The domain's watch rules: one row, or none. `version` increases with each change."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    watch = models.JSONField(default=list)
    version = models.BigIntegerField(default=1)
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="domain_watches_are_one_row")]

    def __str__(self) -> str:
        return f"{len(self.watch)} rules"
