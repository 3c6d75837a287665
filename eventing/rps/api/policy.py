"""/api/v1/rps/{reference}/policy/explain: the rule that decides about a bearer, and the reason."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.api.fields import PolicyField
from eventing.access.rules.tokens import CLAIMS_MAX, TOKEN_CHARS_MAX
from eventing.access.verification.verifier import verifier
from eventing.core.principals import ANONYMOUS, OPERATIONS, Principal
from eventing.rest import documents as docs
from eventing.rest.base import View
from eventing.rest.fields import StrictObject, StrictString
from eventing.rps.rules.policy_explain import PolicyExplanationAnswer
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
    """Claims of a hypothetical token: an object with at least `iss`."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Return the claims unchanged."""
        if not isinstance(data, Mapping) or not 1 <= len(data) <= CLAIMS_MAX:
            raise serializers.ValidationError(f"Send an object of 1 to {CLAIMS_MAX} claims.")
        if not isinstance(data.get("iss"), str) or not data["iss"] or not isinstance(data.get("sub", ""), str):
            raise serializers.ValidationError("iss, the issuer of the claims, must be a text; sub too, if present.")
        return dict(data)

    def to_representation(self, value: Any) -> Any:
        """Return the claims unchanged."""
        return value


class PolicyQuestionSerializer(StrictObject):
    """Question about a token, about hypothetical claims, or, with neither, about a stranger without a token."""

    operation = serializers.ChoiceField(choices=OPERATIONS, help_text="Operation of the bearer.")
    token = StrictString(
        required=False,
        allow_null=True,
        min_length=1,
        max_length=TOKEN_CHARS_MAX,
        help_text="The bearer's token; it is verified, not stored.",
    )
    claims = Claims(required=False, allow_null=True, help_text="Claims as if signed by their issuer, `iss`.")
    policy = PolicyField(
        required=False, allow_null=True, help_text="Unsaved policy that decides instead of the rendezvous point's own."
    )

    def validate(self, attrs: Any) -> Any:
        """Require token or claims, not both."""
        if attrs.get("token") is not None and attrs.get("claims") is not None:
            raise serializers.ValidationError("Send token or claims, not both.")
        return attrs


class PolicyExplanationView(View):
    """Explanation of the policy of a rendezvous point for one bearer and one operation."""

    @extend_schema(
        operation_id="rps_policy_explain",
        summary="Explain a policy's decision",
        description="Requires `administer`; every bearer may ask about its own token. Without token and claims the question is about a stranger without a token. With `policy` that policy decides, and nothing is saved.",
        parameters=[docs.REFERENCE_BEFORE_ACTION],
        request=PolicyQuestionSerializer,
        responses={200: PolicyExplanationAnswer},
        examples=[
            OpenApiExample(
                "Is an adult of that issuer admitted?",
                value={"operation": "subscribe", "claims": {"iss": "https://id.example.org", "sub": "x", "age": 20}},
                request_only=True,
            ),
            OpenApiExample("Is a stranger admitted?", value={"operation": "describe"}, request_only=True),
            OpenApiExample(
                "Would a policy admit a stranger?",
                value={"operation": "subscribe", "policy": [{"issuer": "anyone", "allow": ["describe", "subscribe"]}]},
                request_only=True,
            ),
        ],
    )
    def post(self, request: Request, reference: str) -> Response:
        """Explain the decision."""
        asked = self.body(PolicyQuestionSerializer)
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
            draft=asked.get("policy"),
        )
        return Response(explanation, headers={"Cache-Control": "no-store"})


def verified(token: str) -> Principal:
    """Return the principal of `token`. Raises Unauthenticated, Unavailable."""
    return verifier().verify(token)


def _same(token: str, shown: Any) -> bool:
    return isinstance(shown, str) and hmac.compare_digest(token.encode(), shown.encode())
