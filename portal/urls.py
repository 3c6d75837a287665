"""Where every URL goes that is not the hot path's (eventing/edge/router.py)."""

from django.urls import include, path, re_path

from eventing.api import well_known
from eventing.api.problems import unknown_path

handler400 = "eventing.api.problems.bad_request"
handler404 = "eventing.api.problems.not_found"
handler500 = "eventing.api.problems.server_error"

urlpatterns = [
    path("api/v1/", include("admin_rp.urls")),
    path("api/v1/", include("eventing.api.urls")),
    re_path(r"^api(?:/|\Z)", unknown_path),
    path(".well-known/herald", well_known.herald),
    path(".well-known/jwks.json", well_known.jwks),
    path("", include("portal.pages.urls")),
]
