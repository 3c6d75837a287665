"""URLs of Django: all but those of the hot path (eventing/gateway/router.py)."""

from django.urls import include, path, re_path

from eventing.peering.api import well_known
from eventing.rest.problems import unknown_path

handler400 = "eventing.rest.problems.bad_request"
handler404 = "eventing.rest.problems.not_found"
handler500 = "eventing.rest.problems.server_error"

urlpatterns = [
    path("api/v1/", include("admin_rp.urls")),
    path("api/v1/", include("eventing.urls")),
    path("", include("portal.console.pages.urls")),
    re_path(r"^api(?:/|\Z)", unknown_path),  # behind the pages, of which one is /api/docs
    path(".well-known/herald", well_known.herald),
    path(".well-known/jwks.json", well_known.jwks),
]
