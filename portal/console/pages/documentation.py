"""Pages of the documents of this release, and of the API; for everybody, as the descriptions of the API are."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from portal.documentation.rendering import document
from portal.documentation.search import QUERY_CHARS_MAX, search
from portal.documentation.sources import sources

FILE_S = 3600
"""Lifetime of a picture in a browser's cache; its address has no hash of its content."""


@require_GET
def without_slash(request: HttpRequest) -> HttpResponse:
    """Lead to the index, whose relative addresses need the slash."""
    return HttpResponseRedirect(reverse("portal:documents"))


@never_cache
@require_GET
def document_page(request: HttpRequest, address: str = "") -> HttpResponse:
    """Show a document, or send a picture or another file that documents link to."""
    known = sources().by_address
    source = known.get(address)
    if source is None:
        named = address.removesuffix(".md").removesuffix("README")  # as in the source tree
        moved = known.get(named) or known.get(f"{named}/")
        if moved is not None:
            return HttpResponseRedirect(moved.link)
        return render(request, "404.html", {"detail": "This release has no such document."}, status=404)
    if not source.is_page:
        response = HttpResponse(source.path.read_bytes(), content_type=source.media_type)
        response["Cache-Control"] = f"public, max-age={FILE_S}"
        return response
    return render(request, "portal/documentation.html", {"document": document(source), "source": source.name})


@never_cache
@require_GET
def document_search(request: HttpRequest) -> HttpResponse:
    """Show the documents that have all words of `?q=`."""
    query = request.GET.get("q", "")[:QUERY_CHARS_MAX]
    return render(request, "portal/documentation_search.html", {"query": query, "found": search(query)})


@never_cache
@require_GET
def api(request: HttpRequest, kind: str) -> HttpResponse:
    """Show the description of the API for people; the page's script reads the one for machines, at `address`."""
    return render(request, "portal/api.html", {"kind": kind, "address": reverse(DESCRIPTIONS[kind])})


DESCRIPTIONS = {"http": "schema", "events": "asyncapi"}
"""Names of the addresses of the descriptions."""
