"""/api/v1/keys: the domain's signing keys, to list and, for administrators, to change.

The public keys are at /.well-known/jwks.json.
"""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.models import REASON_CHARS_MAX, DomainKey
from eventing.access.rules.permission import require_overseer
from eventing.access.selectors.keys import keys_latest
from eventing.access.services.keys import SIGNS_AFTER_S, SIGNS_AFTER_S_MAX, key_retire, key_rotate
from eventing.access.shapes import KeyAnswer, KeyList
from eventing.access.verification.revocations import revocations
from eventing.access.verification.verifier import verifier
from eventing.rest.base import View
from eventing.rest.fields import StrictInteger, StrictObject, StrictString

LISTED_MAX = 100  # newest ones; older ones ended long ago
KID = OpenApiParameter("kid", {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}, OpenApiParameter.PATH)


class KeyRotationSerializer(StrictObject):
    """Request of a rotation."""

    signs_after_s = StrictInteger(
        required=False,
        default=SIGNS_AFTER_S,
        min_value=0,
        max_value=SIGNS_AFTER_S_MAX,
        help_text="Seconds from now. With less than the default, verifiers elsewhere may not know the key in time.",
    )


class KeyRetirementSerializer(StrictObject):
    """Request of a retirement."""

    reason = StrictString(
        required=False, allow_blank=True, default="", max_length=REASON_CHARS_MAX, help_text="For administrators."
    )


class KeysView(View):
    """The domain's keys."""

    @extend_schema(
        operation_id="keys_list",
        summary="List the signing keys",
        description="Newest first, ended ones too; nothing of them is secret. For administrators, operators and viewers.",
        responses={200: KeyList},
    )
    def get(self, request: Request) -> Response:
        """List keys."""
        require_overseer(self.principal)
        now = timezone.now()
        rows = keys_latest(LISTED_MAX)
        signing = next((row.kid for row in rows if state_of(row, now) == "signing"), None)
        items = [representation(row, now, signing) for row in rows]
        return Response(KeyList(items=items))


class KeyRotationsView(View):
    """Rotations of the signing key."""

    @extend_schema(
        operation_id="keys_rotate",
        summary="Rotate the signing key",
        description="The new key is published at once and signs from `signs_after_s` seconds from now; the old one verifies until the longest token that it could sign has expired. No client is interrupted.",
        request=KeyRotationSerializer,
        responses={201: KeyAnswer},
        examples=[OpenApiExample("As usual", value={}, request_only=True)],
    )
    def post(self, request: Request) -> Response:
        """Rotate the key."""
        made = key_rotate(principal=self.principal, **self.body(KeyRotationSerializer))
        verifier().keys_changed()  # this process at once, the others when they are notified
        return Response(representation(made, timezone.now(), None), status=201)


class KeyRetirementsView(View):
    """Retirements of a key."""

    @extend_schema(
        operation_id="keys_retire",
        summary="Retire a key now",
        description="For emergencies in which its secret may be known: every token that it signed is refused from now on, connections of such tokens are closed within 5 s, and another key signs.",
        parameters=[KID],
        request=KeyRetirementSerializer,
        responses={200: KeyAnswer},
        examples=[OpenApiExample("A backup was lost", value={"reason": "backup lost"}, request_only=True)],
    )
    def post(self, request: Request, kid: str) -> Response:
        """Retire a key."""
        ended = key_retire(principal=self.principal, kid=kid, **self.body(KeyRetirementSerializer))
        revocations().refresh()
        verifier().keys_changed()
        return Response(representation(ended, timezone.now(), None))


def state_of(row: DomainKey, now: datetime) -> str:
    """`published` (signs later), `signing` (unless a newer key can), or `retired`."""
    if row.not_after is not None and row.not_after <= now:
        return "retired"
    return "published" if row.not_before > now else "signing"


def representation(row: DomainKey, now: datetime, signing: str | None) -> KeyAnswer:
    """Describe a key for answers. Of the keys that could sign, only the newest, `signing` (None: not looked up), does;
    others verify."""
    state = state_of(row, now)
    if state == "signing" and signing is not None and row.kid != signing:
        state = "verifying"
    return KeyAnswer.of(row, state=state)
