"""/api/v1/tokens: administrators sign tokens of this domain."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.services.tokens import token_create
from eventing.core.errors import Forbidden
from eventing.rest import documents as docs
from eventing.rest import representations
from eventing.rest.base import View
from eventing.rest.requests import TokenCreation


class Tokens(View):
    """Tokens are not stored: what is signed here is shown once."""

    @extend_schema(
        operation_id="tokens_create",
        summary="Sign a token",
        description="For administrators whose own token is not narrowed.",
        request=TokenCreation,
        responses={201: docs.ref("Token")},
        examples=[
            OpenApiExample(
                "A sensor that only publishes",
                value={"subject": "roof", "lease_s": 3600, "ops": ["publish"]},
                request_only=True,
            )
        ],
    )
    def post(self, request: Request) -> Response:
        """Sign."""
        if not self.principal.admin or self.principal.narrowed:
            raise Forbidden("Only an administrator's token that is not narrowed signs tokens.")
        body = self.body(TokenCreation)
        issued = token_create(
            principal=self.principal,
            subject=body["subject"],
            admin=body["admin"],
            lease_s=body.get("lease_s"),
            operations=body.get("ops"),
            scopes=body.get("scopes"),
            audience=body.get("audience"),
        )
        return Response(representations.token(issued), status=201, headers={"Cache-Control": "no-store"})
