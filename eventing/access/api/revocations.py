"""/api/v1/revocations: tokens, subjects and keys that are no longer valid although they have not expired."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.models import ISSUER_CHARS_MAX, REASON_CHARS_MAX, VALUE_CHARS_MAX
from eventing.access.models import Revocation as RevocationRow
from eventing.access.rules.permission import require_overseer
from eventing.access.rules.revocations import KINDS
from eventing.access.selectors.revocations import revocations_page
from eventing.access.services.keys import key_retire
from eventing.access.services.revocations import revocation_create, revocation_data, revocation_lift
from eventing.access.shapes import RevocationAnswer, RevocationPage
from eventing.access.verification.revocations import revocations
from eventing.access.verification.verifier import verifier
from eventing.conf import config
from eventing.core.errors import InvalidRequest
from eventing.rest import documents as docs
from eventing.rest.base import View, page_answer
from eventing.rest.fields import StrictObject, StrictString

KIND = OpenApiParameter("kind", str, enum=KINDS, description="Only revocations of this kind.")
VALUE = OpenApiParameter("value", str, description="Only revocations of this token id, subject or key id.")
REVOCATION_ID = OpenApiParameter(
    "revocation_id", {"type": "string", "pattern": "^[1-9][0-9]{0,17}$"}, OpenApiParameter.PATH
)


class RevocationCreationSerializer(StrictObject):
    """Request of a revocation."""

    kind = serializers.ChoiceField(
        choices=KINDS,
        help_text="token: by its id (jti). subject: all tokens issued to it until now. key: all tokens signed with it.",
    )
    value = StrictString(min_length=1, max_length=VALUE_CHARS_MAX, help_text="The jti, the subject, or the kid.")
    issuer = StrictString(
        required=False,
        allow_null=True,
        min_length=1,
        max_length=ISSUER_CHARS_MAX,
        help_text="Issuer of the token or key; null or absent: this domain. ISSUER|JWKS where a policy states the address of the keys.",
    )
    reason = StrictString(
        required=False, allow_blank=True, default="", max_length=REASON_CHARS_MAX, help_text="For administrators."
    )


class RevocationsView(View):
    """Revocations in force."""

    @extend_schema(
        operation_id="revocations_list",
        summary="List revocations",
        description="Revocations in force, newest first. Requires the role administrator, operator or viewer.",
        parameters=[KIND, VALUE, docs.CURSOR, docs.LIMIT],
        responses={200: RevocationPage},
    )
    def get(self, request: Request) -> Response:
        """List revocations."""
        require_overseer(self.principal)
        kind = self.query("kind")
        if kind is not None and kind not in KINDS:
            raise InvalidRequest(f"kind is one of {', '.join(KINDS)}.")
        page = revocations_page(kind=kind, value=self.query("value"), cursor=self.query("cursor"), limit=self.limit())
        return page_answer(page, [revocation_data(row) for row in page.items])

    @extend_schema(
        operation_id="revocations_create",
        summary="Revoke a token, a subject or a key",
        description=(
            "For administrators whose own token is not narrowed, for operators (tokens and subjects), and for "
            "the bearer of a token to revoke that token. Connections with affected tokens are closed within 5 s. "
            "Repeating the request for a token or a key answers 200; for a subject the revocation then also "
            "covers tokens issued in the meantime."
        ),
        request=RevocationCreationSerializer,
        responses={201: RevocationAnswer, 200: RevocationAnswer},
        examples=[
            OpenApiExample(
                "A lost laptop", value={"kind": "subject", "value": "ann", "reason": "laptop lost"}, request_only=True
            )
        ],
    )
    def post(self, request: Request) -> Response:
        """Revoke."""
        revoked = revocation_create(principal=self.principal, **self.body(RevocationCreationSerializer))
        revocations().refresh()  # this process at once, the others when they are notified
        if revoked.row.kind == RevocationRow.Kind.KEY and revoked.row.issuer == config().domain:
            key_retire(principal=self.principal, kid=revoked.row.value, reason=revoked.row.reason)  # another key signs
            verifier().keys_changed()
        return Response(revocation_data(revoked.row), status=201 if revoked.made else 200)


class RevocationView(View):
    """One revocation."""

    @extend_schema(
        operation_id="revocations_lift",
        summary="Lift the revocation of a subject",
        description="The subject's tokens are valid again until they expire. The revocation of a token or a key cannot be lifted.",
        parameters=[REVOCATION_ID],
        responses={204: None},
    )
    def delete(self, request: Request, revocation_id: str) -> Response:
        """Lift the revocation."""
        revocation_lift(principal=self.principal, revocation_id=revocation_id)
        revocations().refresh()
        return Response(status=204)
