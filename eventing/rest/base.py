"""Base of all views: JSON only, problem documents, bounded queries, entity tags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from django.http import HttpRequest
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from eventing.core.errors import TOKEN_NEEDED, Gone, InvalidRequest, NotFound, Unauthenticated
from eventing.core.principals import Principal
from eventing.rest.ports import principal_of
from eventing.sql.pages import LIMIT_DEFAULT, LIMIT_MAX, Page

_ETAG = re.compile(r'"([!#-~]{1,64})"')
_VERSION = re.compile(r"[1-9][0-9]{0,15}")
_LIMIT = re.compile(r"[0-9]{1,9}", re.ASCII)
IF_MATCH_CHARS_MAX = 1024

Item = TypeVar("Item")


class OnlyJson(BaseContentNegotiation):
    """Content negotiation with one representation: `Accept` does not choose (RFC 9110 section 12.5.1 allows disregarding it)."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        """Select the JSON parser for JSON."""
        media_type = (request.content_type or "").partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == media_type), None)

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """Select the first renderer."""
        renderer = next(iter(renderers))
        return renderer, renderer.media_type


class View(APIView):
    """Base of the REST views."""

    content_negotiation_class = OnlyJson
    http_method_names = ["get", "head", "post", "patch", "delete"]

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        """Prevent DRF from silently dropping a chunked body, which it takes for none without Content-Length."""
        if "HTTP_TRANSFER_ENCODING" in request.META and not request.META.get("CONTENT_LENGTH"):
            request.META["CONTENT_LENGTH"] = "1"  # any number but 0: the parser reads to the end, within its bound
        return super().initialize_request(request, *args, **kwargs)

    def handle_exception(self, exc: Exception) -> Response:
        """Handle as DRF does, but do not disclose to a client without a token what exists."""
        if isinstance(exc, NotFound | Gone) and self.principal.anonymous:
            exc = Unauthenticated(TOKEN_NEEDED)
        return super().handle_exception(exc)

    @property
    def principal(self) -> Principal:
        """Principal of the request."""
        return principal_of(self.request)

    def body(self, serializer: type[BaseSerializer[Any]]) -> dict[str, Any]:
        """Validate the request's body and return the members that were sent. Raises ValidationError and the parser's errors."""
        checked = serializer(data=self.request.data)
        checked.is_valid(raise_exception=True)
        return dict(checked.validated_data)

    def query(self, name: str) -> str | None:
        """Return a member of the query; None if absent. Raises InvalidRequest if it is repeated."""
        values = self.request.query_params.getlist(name)
        if len(values) > 1:
            raise InvalidRequest(f"{name} is repeated in the query.")
        return values[0] if values else None

    def limit(self) -> int:
        """Number of items on a page; more than LIMIT_MAX is lowered to it."""
        text = self.query("limit")
        if text is None:
            return LIMIT_DEFAULT
        if not _LIMIT.fullmatch(text) or int(text) < 1:
            raise InvalidRequest("limit is a number of at least 1.")
        return min(int(text), LIMIT_MAX)

    def expected_tags(self) -> frozenset[str] | None:
        """Entity tags named by If-Match, without quotes; None if any version may be changed. A weak tag matches nothing."""
        header = self.request.headers.get("If-Match")
        if header is None or header.strip() == "*":
            return None
        tags = header[:IF_MATCH_CHARS_MAX].split(",")
        matches = [_ETAG.fullmatch(tag.strip()) for tag in tags]
        return frozenset(match[1] for match in matches if match)

    def expected_versions(self) -> frozenset[int] | None:
        """Versions named by If-Match, as `expected_tags`. A foreign tag matches nothing."""
        tags = self.expected_tags()
        return None if tags is None else frozenset(int(tag) for tag in tags if _VERSION.fullmatch(tag))


def etag(tag: int | str) -> dict[str, str]:
    """Make the header of an entity tag: a version, or a text without quotes."""
    return {"ETag": f'"{tag}"'}


def page_answer(page: Page[Item], items: Sequence[Any]) -> Response:
    """Make the answer of a page: its items, and the cursor of the next page (null on the last)."""
    return Response({"items": items, "next": page.next})
