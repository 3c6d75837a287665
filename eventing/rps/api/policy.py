"""/api/v1/rps/{reference}/policy/explain: which rule decides about a bearer, and why."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.rules.tokens import CLAIMS_MAX, TOKEN_CHARS_MAX
from eventing.access.verification.verifier import verifier
from eventing.core.principals import ANONYMOUS, OPERATIONS, Principal
from eventing.rest import documents as docs
from eventing.rest.base import View
from eventing.rest.fields import Members, Text
from eventing.rps.services.policy import made_up, policy_explanation


@extend_schema_field(
    {
        "type": "object",
        "properties": {"iss": {"type": "string", "minLength": 1}, "sub": {"type": "string"}},
        "required": ["iss"],
        "maxProperties": CLAIMS_MAX,
    }
)
class Claims(serializers.Field[Any, Any, Any, Any]):
    """The claims of a token that need not exist: an object with at least `iss`."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """The claims as they are."""
        if not isinstance(data, Mapping) or not 1 <= len(data) <= CLAIMS_MAX:
            raise serializers.ValidationError(f"This is an object of 1 to {CLAIMS_MAX} claims.")
        if not isinstance(data.get("iss"), str) or not data["iss"] or not isinstance(data.get("sub", ""), str):
            raise serializers.ValidationError("iss, who issued the claims, is a text; sub is one if it is there.")
        return dict(data)

    def to_representation(self, value: Any) -> Any:
        """The claims as they are."""
        return value


class PolicyQuestion(Members):
    """What is asked: about a token, about made-up claims, or, with neither, about a stranger without a token."""

    operation = serializers.ChoiceField(choices=OPERATIONS, help_text="What the bearer would do.")
    token = Text(
        required=False,
        allow_null=True,
        min_length=1,
        max_length=TOKEN_CHARS_MAX,
        help_text="The bearer's token; it is verified, not kept.",
    )
    claims = Claims(required=False, allow_null=True, help_text="Claims as if their issuer, `iss`, had signed them.")

    def validate(self, attrs: Any) -> Any:
        """Token or claims, not both."""
        if attrs.get("token") is not None and attrs.get("claims") is not None:
            raise serializers.ValidationError("Send token or claims, not both.")
        return attrs


class PolicyExplanation(View):
    """The policy of a rendezvous point, asked about one bearer and one operation."""

    @extend_schema(
        operation_id="rps_policy_explain",
        summary="Explain what a policy decides",
        description="For whoever administers the rendezvous point; for everybody about the very token they ask with. "
        "Without token and claims it is about a stranger who shows no token.",
        parameters=[docs.REFERENCE_BEFORE_ACTION],
        request=PolicyQuestion,
        responses={200: docs.ref("PolicyExplanation")},
        examples=[
            OpenApiExample(
                "Would an adult of that issuer get in?",
                value={"operation": "subscribe", "claims": {"iss": "https://id.example.org", "sub": "x", "age": 20}},
                request_only=True,
            ),
            OpenApiExample("And a stranger?", value={"operation": "describe"}, request_only=True),
        ],
    )
    def post(self, request: Request, reference: str) -> Response:
        """Explain."""
        asked = self.body(PolicyQuestion)
        token, claims = asked.get("token"), asked.get("claims")

        def bearer() -> Principal:
            if token is not None:
                return verified(token)
            return ANONYMOUS if claims is None else made_up(claims)

        explanation = policy_explanation(
            reference=reference,
            asker=self.principal,
            operation=asked["operation"],
            bearer=bearer,
            own=token is not None and _same(token, request.auth),
        )
        return Response(asdict(explanation), headers={"Cache-Control": "no-store"})


def verified(token: str) -> Principal:
    """Whom `token` speaks for. Raises Unauthenticated, Unavailable."""
    return verifier().verify(token)


def _same(token: str, shown: Any) -> bool:
    return isinstance(shown, str) and hmac.compare_digest(token.encode(), shown.encode())
