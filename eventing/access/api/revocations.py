"""/api/v1/revocations: tokens, subjects and keys that are no longer good although they have not expired."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.models import Revocation as RevocationRow
from eventing.access.models.revocation import ISSUER_CHARS_MAX, REASON_CHARS_MAX, VALUE_CHARS_MAX
from eventing.access.rules.permission import require_overseer
from eventing.access.rules.revocations import KINDS
from eventing.access.selectors.revocations import revocations_page
from eventing.access.services.keys import key_retire
from eventing.access.services.revocations import revocation_create, revocation_data, revocation_lift
from eventing.access.verification.revocations import revocations
from eventing.access.verification.verifier import verifier
from eventing.conf import config
from eventing.core.errors import InvalidRequest
from eventing.rest import documents as docs
from eventing.rest.base import View, page_answer
from eventing.rest.fields import Members, Text

KIND = OpenApiParameter("kind", str, enum=KINDS, description="Only revocations of this kind.")
VALUE = OpenApiParameter("value", str, description="Only those of this token id, subject or key id.")
REVOCATION_ID = OpenApiParameter(
    "revocation_id", {"type": "string", "pattern": "^[1-9][0-9]{0,17}$"}, OpenApiParameter.PATH
)


class RevocationCreation(Members):
    """What is to be revoked."""

    kind = serializers.ChoiceField(
        choices=KINDS,
        help_text="token: by its id (jti). subject: all tokens issued to it until now. key: all tokens it has signed.",
    )
    value = Text(min_length=1, max_length=VALUE_CHARS_MAX, help_text="The jti, the subject, or the kid.")
    issuer = Text(
        required=False,
        allow_null=True,
        min_length=1,
        max_length=ISSUER_CHARS_MAX,
        help_text="Who issued it; null or absent: this domain. ISSUER|JWKS where a policy names the keys' address.",
    )
    reason = Text(
        required=False, allow_blank=True, default="", max_length=REASON_CHARS_MAX, help_text="For administrators."
    )


class Revocations(View):
    """The revocations in force."""

    @extend_schema(
        operation_id="revocations_list",
        summary="List revocations",
        description="Those in force, newest first; for administrators, operators and viewers.",
        parameters=[KIND, VALUE, docs.CURSOR, docs.LIMIT],
        responses={200: docs.ref("RevocationPage")},
    )
    def get(self, request: Request) -> Response:
        """List."""
        require_overseer(self.principal)
        kind = self.query("kind")
        if kind is not None and kind not in KINDS:
            raise InvalidRequest(f"kind is one of {', '.join(KINDS)}.")
        page = revocations_page(kind=kind, value=self.query("value"), cursor=self.query("cursor"), limit=self.limit())
        return page_answer(page, [revocation_data(row) for row in page.items])

    @extend_schema(
        operation_id="revocations_create",
        summary="Revoke a token, a subject or a key",
        description="For administrators whose own token is not narrowed, for operators (tokens and subjects), and for the "
        "bearer of a token to revoke that token. Connections that used it are closed within 5 s. Repeating it for a token or a key answers 200; for a "
        "subject it covers the tokens issued meanwhile as well.",
        request=RevocationCreation,
        responses={201: docs.ref("Revocation"), 200: docs.ref("Revocation")},
        examples=[
            OpenApiExample(
                "A lost laptop", value={"kind": "subject", "value": "ann", "reason": "laptop lost"}, request_only=True
            )
        ],
    )
    def post(self, request: Request) -> Response:
        """Revoke."""
        revoked = revocation_create(principal=self.principal, **self.body(RevocationCreation))
        revocations().look()  # this process at once, the others as they hear of it
        if revoked.row.kind == RevocationRow.Kind.KEY and revoked.row.issuer == config().domain:
            key_retire(principal=self.principal, kid=revoked.row.value, reason=revoked.row.reason)  # another one signs
            verifier().keys_changed()
        return Response(revocation_data(revoked.row), status=201 if revoked.made else 200)


class Revocation(View):
    """One revocation."""

    @extend_schema(
        operation_id="revocations_lift",
        summary="Lift the revocation of a subject",
        description="Its tokens are good again until they end. A token or a key stays revoked.",
        parameters=[REVOCATION_ID],
        responses={204: None},
    )
    def delete(self, request: Request, revocation_id: str) -> Response:
        """Lift."""
        revocation_lift(principal=self.principal, revocation_id=revocation_id)
        revocations().look()
        return Response(status=204)
