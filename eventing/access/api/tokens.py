"""/api/v1/tokens: administrators sign tokens of this domain."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.api.requests import TokenCreation
from eventing.access.services.tokens import IssuedToken, token_create
from eventing.core.errors import Forbidden
from eventing.core.timestamps import timestamp
from eventing.rest import documents as docs
from eventing.rest.base import View


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
        return Response(token(issued), status=201, headers={"Cache-Control": "no-store"})


def token(issued: IssuedToken) -> dict[str, Any]:
    """A token that was just signed."""
    return {
        "token": issued.token,
        "id": issued.id,
        "subject": issued.subject,
        "admin": issued.admin,
        "ops": None if issued.operations is None else list(issued.operations),
        "scopes": None
        if issued.scopes is None
        else [{"rps": list(scope.rps), "ops": sorted(scope.operations)} for scope in issued.scopes],
        "granted_s": issued.granted_s,
        "expires_at": timestamp(issued.expires_at),
    }
