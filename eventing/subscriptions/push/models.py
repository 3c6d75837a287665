"""Tables of push: the endpoint of a subscription, and dead letters, which reference places in the log."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from eventing.subscriptions.models import Subscription
from eventing.subscriptions.push.rules.endpoint_states import REASON_CHARS_MAX, EndpointState

HOST_CHARS_MAX = 253
EPOCH_CHARS_MAX = 26
_STATES = [one.value for one in EndpointState]


class PushEndpoint(models.Model):
    """The endpoint of a subscription, and how it stands. The other options are in the subscription's `deliver`.

    `sealed` has the URL, the custom headers and the secrets, encrypted (services/vault.py). `generation` counts what owners
    do: a verdict of the deliverer about an earlier generation is discarded. `test_id` is set while a test event is to be
    sent. `allowed_rate` is the most requests a minute that the endpoint allowed when it consented; null: no bound.
    `warn_at` is when the next attempt to warn the owner of a pause is due; null: none. `warnings` counts those attempts.
    """

    subscription = models.OneToOneField(Subscription, on_delete=models.CASCADE, primary_key=True, related_name="push")
    sealed = models.BinaryField()
    host = models.CharField(max_length=HOST_CHARS_MAX)
    state = models.CharField(max_length=12, choices=[(one, one) for one in _STATES])
    state_at = models.DateTimeField()
    verified = models.BooleanField(default=False)
    failures = models.BigIntegerField(default=0)
    failing_since = models.DateTimeField(null=True)
    next_at = models.DateTimeField(null=True)
    reason = models.CharField(max_length=REASON_CHARS_MAX, blank=True, default="")
    generation = models.BigIntegerField(default=1)
    test_id = models.CharField(max_length=64, blank=True, default="")
    allowed_rate = models.BigIntegerField(null=True)
    warn_at = models.DateTimeField(null=True)
    warnings = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(state__in=_STATES), name="push_endpoint_state_is_known")]
        indexes = [
            models.Index(fields=["state", "host"], name="push_endpoint_by_state"),
            models.Index(fields=["warn_at"], name="push_endpoint_to_warn_of", condition=Q(warn_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.subscription_id


class PushDeadLetter(models.Model):
    """Events of one subscription that delivery gave up: offsets `first` to `last` of an epoch, and why.

    With `replay` they are to be sent again: by their owner's wish, which may also concern events that were delivered.
    """

    id = models.BigAutoField(primary_key=True)
    subscription = models.ForeignKey(
        Subscription, on_delete=models.CASCADE, related_name="dead_letters", db_index=False
    )
    epoch = models.CharField(max_length=EPOCH_CHARS_MAX)
    first = models.BigIntegerField()
    last = models.BigIntegerField()
    reason = models.CharField(max_length=REASON_CHARS_MAX)
    attempts = models.BigIntegerField(default=0)
    replay = models.BooleanField(default=False)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(last__gte=models.F("first")), name="dead_letter_has_events")]
        indexes = [
            models.Index(fields=["subscription", "id"], name="dead_letter_of"),
            models.Index(fields=["replay", "id"], name="dead_letter_to_replay"),
        ]

    def __str__(self) -> str:
        return f"{self.subscription_id} {self.epoch}:{self.first}-{self.last}"
