"""URL patterns of the administrative RPs below /api/v1/; portal/urls.py puts them before the others."""

from __future__ import annotations

from django.urls import path

from admin_rp.api import (
    CatalogueView,
    DomainSnapshotView,
    NamesExportView,
    OverlaySnapshotView,
    RendezvousPointSnapshotView,
)
from eventing import urls as _with_converters  # noqa: F401 - registers `reference_before_action`

urlpatterns = [
    path("admin/catalogue", CatalogueView.as_view(), name="admin-catalogue"),
    path("admin/snapshot", DomainSnapshotView.as_view(), name="admin-snapshot"),
    path("overlay/snapshot", OverlaySnapshotView.as_view(), name="overlay-snapshot"),
    path("admin/names", NamesExportView.as_view(), name="admin-names"),
    path("rps/<reference_before_action:reference>/snapshot", RendezvousPointSnapshotView.as_view(), name="rp-snapshot"),
]
