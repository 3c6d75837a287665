"""Peers: other domains, the trust that administrators here gave them, and the state of agreement between the two."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from eventing.peering.rules.peers import (
    BYTES_PER_S,
    EVENTS_PER_S,
    NOTE_CHARS_MAX,
    REQUESTS_PER_S,
    URL_CHARS_MAX,
    PeeringState,
    Stance,
)
from eventing.sql.columns import LeaseColumns

NAME_CHARS_MAX = 253
PROBLEM_CHARS_MAX = 400


class Peer(LeaseColumns):
    """Another domain. Its keys are in its domain document (peering/models/domain_document.py), except while it only
    asks.

    Attributes:
        name: the domain's name.
        url: address of its gateways, without a slash at the end.
        state: of peering.rules.peers.State.
        fingerprint: kid of its first key, which the administrators compared.
        push, host, gossip: whether it may send events here, have replicas of its RPs hosted here, take part in gossip.
        events_per_s, bytes_per_s, requests_per_s: the rates that it may send.
        theirs: the stance that it stated last (peering.rules.peers.Stance); empty for none yet.
        theirs_at_ms: start of that stance, by its clock: a late hello with an older stance changes nothing.
        asked_document: while it only asks, the domain document in its hello, for inspection only; not trusted.
        hello_at: time of the next hello to it; None in states without hellos.
        hello_failures: consecutive hellos that failed, or whose answer is awaited.
        hello_problem: why the last hello failed, one sentence; empty if it succeeded.
        hello_told: stance and document serial of this domain that the peer has confirmed.
        heard_at: time of the last contact, which renews the lease; None for never.
    """

    name = models.CharField(primary_key=True, max_length=NAME_CHARS_MAX)
    url = models.CharField(max_length=URL_CHARS_MAX)
    state = models.CharField(max_length=16, choices=[(state.value, state.value) for state in PeeringState])
    fingerprint = models.CharField(max_length=64)
    push = models.BooleanField(default=True)
    host = models.BooleanField(default=False)
    gossip = models.BooleanField(default=True)
    events_per_s = models.BigIntegerField(default=EVENTS_PER_S)
    bytes_per_s = models.BigIntegerField(default=BYTES_PER_S)
    requests_per_s = models.BigIntegerField(default=REQUESTS_PER_S)
    theirs = models.CharField(
        max_length=16, blank=True, default="", choices=[(stance.value, stance.value) for stance in Stance]
    )
    theirs_at_ms = models.BigIntegerField(default=0)
    asked_document = models.BinaryField(null=True)
    hello_at = models.DateTimeField(null=True)
    hello_failures = models.BigIntegerField(default=0)
    hello_problem = models.CharField(max_length=PROBLEM_CHARS_MAX, blank=True, default="")
    hello_told = models.CharField(max_length=64, blank=True, default="")
    heard_at = models.DateTimeField(null=True)
    note = models.CharField(max_length=NOTE_CHARS_MAX, blank=True, default="")
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=["proposed", "asked", "active", "suspended"]), name="peer_state_is_known"
            ),
            models.CheckConstraint(condition=Q(granted_s__gte=1), name="peer_lease_lasts"),
            models.CheckConstraint(
                condition=Q(events_per_s__gte=1) & Q(bytes_per_s__gte=1) & Q(requests_per_s__gte=1),
                name="peer_may_send_something",
            ),
            models.CheckConstraint(
                condition=Q(state="asked") | Q(asked_document=None), name="peer_shows_a_document_while_it_asks"
            ),
        ]
        indexes = [
            models.Index(fields=["state", "name"], name="peer_by_state"),
            models.Index(fields=["hello_at"], name="peer_to_greet"),
            models.Index(fields=["expires_at"], name="peer_by_end"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def active(self) -> bool:
        """Return whether events are exchanged: both sides approved, and this one has not suspended the peer."""
        return self.state == PeeringState.ACTIVE

    @property
    def suspended(self) -> bool:
        """Return whether an administrator here suspended the peer."""
        return self.state == PeeringState.SUSPENDED
