"""/api/v1/tokens/biscuit: the bearer of a token gets a form of it that can be narrowed and handed on without asking us."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.services.delegation import biscuit_create
from eventing.core.timestamps import timestamp
from eventing.rest import documents as docs
from eventing.rest.base import View
from eventing.rest.fields import Members


class NoMembers(Members):
    """There is nothing to ask for: a Biscuit says exactly what its token says."""


class Biscuits(View):
    """Biscuits are not stored: what is signed here is shown once."""

    @extend_schema(
        operation_id="tokens_biscuit",
        summary="Make your token a Biscuit",
        description="A Biscuit says what your token says and ends with it. Whoever holds it can narrow it without asking.",
        request=None,
        responses={201: docs.ref("Biscuit")},
    )
    def post(self, request: Request) -> Response:
        """Sign."""
        self.body(NoMembers)
        issued = biscuit_create(principal=self.principal)
        answer = {
            "token": issued.token,
            "id": issued.id,
            "subject": issued.subject,
            "admin": issued.admin,
            "expires_at": timestamp(issued.expires_at),
        }
        return Response(answer, status=201, headers={"Cache-Control": "no-store"})
