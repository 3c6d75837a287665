"""Public statements of a domain, without a token: /.well-known/herald and /.well-known/jwks.json."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from eventing.access.selectors.keys import public_keys
from eventing.conf import config
from eventing.core.errors import MethodNotAllowed
from eventing.peering.rules.domain_documents import published, read
from eventing.peering.services.domain_documents import own_document
from eventing.rest.problems import problem

VERSIONS = ["herald.v1"]
FRESH_S = 60  # how long a reader may keep the answer; a new key is published longer than that before it signs


@csrf_exempt
def herald(request: HttpRequest) -> HttpResponse:
    """Return the domain's name, protocol versions, interface addresses and keys, and the document that other domains
    pin.
    """
    base, document = config().base_url, own_document()
    return _answer(
        request,
        {
            "domain": config().domain,
            "versions": VERSIONS,
            "endpoints": {
                "api": f"{base}/api/v1",
                "schema": f"{base}/api/v1/schema",
                "websocket": f"ws{base.removeprefix('http')}/ws",
                "jwks": f"{base}/.well-known/jwks.json",
            },
            "keys": public_keys(),
            "document": published(document),
            "fingerprint": read(document).fingerprint,
        },
    )


@csrf_exempt
def jwks(request: HttpRequest) -> HttpResponse:
    """Return the keys that verify this domain's tokens (RFC 7517)."""
    return _answer(request, {"keys": public_keys()})


def _answer(request: HttpRequest, document: dict[str, object]) -> HttpResponse:
    if request.method not in ("GET", "HEAD"):
        refusal = problem(MethodNotAllowed("Use GET."))
        refusal["Allow"] = "GET, HEAD"
        return refusal
    response = JsonResponse(document)
    response["Cache-Control"] = f"public, max-age={FRESH_S}"
    response["Access-Control-Allow-Origin"] = "*"
    return response
