"""/api/v1/tokens: creation of this domain's tokens by administrators."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.api.requests import TokenCreationSerializer
from eventing.access.rules.permission import require_overseer
from eventing.access.selectors.issued_tokens import STATES, tokens_issued
from eventing.access.services.tokens import IssuedToken, token_create
from eventing.access.shapes import IssuedTokenAnswer, IssuedTokenPage, ScopeAnswer, TokenAnswer
from eventing.core.errors import Forbidden, InvalidRequest
from eventing.rest import documents as docs
from eventing.rest.base import View, page_answer

STATE = OpenApiParameter("state", str, enum=STATES, description="Only tokens in this state.")


class TokensView(View):
    """Tokens of this domain: what was issued, and creation. Tokens are not stored and shown only once."""

    @extend_schema(
        operation_id="tokens_list",
        summary="List issued tokens",
        description="Tokens issued in the last 30 days, newest first, as the audit records them; the tokens themselves are not stored. A page may be short, even empty, and still have a next. Requires the role administrator, operator or viewer.",
        parameters=[STATE, docs.CURSOR, docs.LIMIT],
        responses={200: IssuedTokenPage},
    )
    def get(self, request: Request) -> Response:
        """List issued tokens."""
        require_overseer(self.principal)
        state = self.query("state")
        if state is not None and state not in STATES:
            raise InvalidRequest(f"state is one of {', '.join(STATES)}.")
        page = tokens_issued(state=state, cursor=self.query("cursor"), limit=self.limit())
        return page_answer(page, [IssuedTokenAnswer.of(one) for one in page.items])

    @extend_schema(
        operation_id="tokens_create",
        summary="Create a token",
        description="Requires an administrator's token that is not narrowed.",
        request=TokenCreationSerializer,
        responses={201: TokenAnswer},
        examples=[
            OpenApiExample(
                "A sensor that only publishes",
                value={"subject": "roof", "lease_s": 3600, "ops": ["publish"]},
                request_only=True,
            )
        ],
    )
    def post(self, request: Request) -> Response:
        """Sign a token."""
        if not self.principal.admin or self.principal.narrowed:
            raise Forbidden("Creating tokens requires an administrator's token that is not narrowed.")
        body = self.body(TokenCreationSerializer)
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


def token(issued: IssuedToken) -> TokenAnswer:
    """Describe a token that was just signed."""
    scopes = issued.scopes
    return TokenAnswer.of(
        issued,
        ops=None if issued.operations is None else list(issued.operations),
        scopes=None
        if scopes is None
        else [ScopeAnswer(rps=list(scope.rps), ops=sorted(scope.operations)) for scope in scopes],
    )
