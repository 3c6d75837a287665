"""/api/v1/asyncapi: the AsyncAPI description of WebSocket, Server-Sent Events and deliveries, with this domain's addresses."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from django.conf import settings
from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.conf import config
from eventing.core.container import per_process
from eventing.core.errors import InvalidRequest
from eventing.rest.base import View

_CORS = {"Access-Control-Allow-Origin": "*"}


class AsyncApiView(View):
    """The AsyncAPI description, as JSON or with `?format=yaml` as YAML; without authentication."""

    authentication_classes = ()
    permission_classes = ()
    schema = None

    def get(self, request: Request) -> Response | HttpResponse:
        """Return the description."""
        form = self.query("format") or "json"
        if form == "json":
            return Response(_document(), headers=_CORS)
        if form == "yaml":
            text = yaml.safe_dump(_document(), sort_keys=False, allow_unicode=True, width=120)
            return HttpResponse(text, content_type="application/yaml", headers=_CORS)
        raise InvalidRequest("format is json or yaml.")


@per_process
def _document() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((Path(settings.DOCUMENTS) / "docs" / "asyncapi.yaml").read_text())
    address = urlsplit(config().base_url)
    secure = "s" if address.scheme == "https" else ""
    for name, protocol in (("websocket", f"ws{secure}"), ("http", f"http{secure}")):
        document["servers"][name] |= {"host": address.netloc, "protocol": protocol}
    return document
