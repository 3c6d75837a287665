"""/api/v1/tokens/biscuit: conversion of the bearer's token into a form that can be narrowed and delegated offline."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.services.delegation import biscuit_create
from eventing.access.shapes import BiscuitAnswer
from eventing.rest.base import View
from eventing.rest.fields import StrictObject


class NoMembersSerializer(StrictObject):
    """Empty request: a Biscuit has exactly the claims of its token."""


class BiscuitsView(View):
    """Creation of Biscuits. They are not stored and shown only once."""

    @extend_schema(
        operation_id="tokens_biscuit",
        summary="Convert your token into a Biscuit",
        description="A Biscuit has the claims of your token and expires with it. Its holder can narrow it without a request.",
        request=None,
        responses={201: BiscuitAnswer},
    )
    def post(self, request: Request) -> Response:
        """Sign a Biscuit."""
        self.body(NoMembersSerializer)
        return Response(biscuit_create(principal=self.principal), status=201, headers={"Cache-Control": "no-store"})
