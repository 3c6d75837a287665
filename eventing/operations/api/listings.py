"""Lists over the whole domain for whoever looks after it: leases, durable subscriptions, the tree of names."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.rules.permission import require_overseer
from eventing.core.errors import Forbidden
from eventing.core.principals import Principal
from eventing.core.roles import oversees
from eventing.core.timestamps import timestamp
from eventing.operations.selectors.leases import KINDS, leases_page
from eventing.rest import documents as docs
from eventing.rest.base import View, page_answer
from eventing.rest.moments import moment
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.rps.selectors.rendezvous_point_lists import BRANCHES_MAX, names_below
from eventing.subscriptions.api import representations
from eventing.subscriptions.selectors.subscription_lists import LAGS_MAX, LOGS_MAX, SORTS, subscriptions_listed

KIND = OpenApiParameter("kind", str, enum=list(KINDS), description="Only leases of this kind.")
ENDS_BEFORE = OpenApiParameter(
    "ends_before", {"type": "string", "format": "date-time"}, description="Only those that end before then."
)
RP = OpenApiParameter("rp", str, description="Only those at this rendezvous point, by id or name.")
OWNER = OpenApiParameter("owner", str, description="Only those of this identity.")
SORT = OpenApiParameter(
    "sort",
    str,
    enum=list(SORTS),
    description=f"`ends`: the lease that ends soonest first; `lag`: furthest behind first, of at most {LAGS_MAX} that match, "
    f"at {LOGS_MAX} rendezvous points (`complete` says whether that was all); else by id.",
)
BRANCH = OpenApiParameter("prefix", str, description="Below this name, `/authority/a/`; absent: below this domain.")


class Leases(View):
    """All leases."""

    @extend_schema(
        operation_id="leases_list",
        summary="List leases",
        description="Of rendezvous points, durable subscriptions, replicas and peers together, the soonest to end first; for "
        "administrators, operators and viewers.",
        parameters=[KIND, ENDS_BEFORE, docs.CURSOR, docs.LIMIT],
        responses={200: docs.ref("LeasePage")},
    )
    def get(self, request: Request) -> Response:
        """List."""
        require_overseer(self.principal)
        page = leases_page(
            kind=self.query("kind"),
            ends_before=moment("ends_before", self.query("ends_before")),
            cursor=self.query("cursor"),
            limit=self.limit(),
        )
        items = [
            {
                "kind": lease.kind,
                "id": lease.id,
                "rp": lease.rp,
                "name": lease.name,
                "owner": lease.owner,
                "granted_s": lease.granted_s,
                "expires_at": timestamp(lease.expires_at),
                "warned": lease.warned,
            }
            for lease in page.items
        ]
        return page_answer(page, items)


class Subscriptions(View):
    """Durable subscriptions of the whole domain."""

    @extend_schema(
        operation_id="subscriptions_list",
        summary="List durable subscriptions",
        description="All for administrators, operators and viewers, their own for everybody else whose token is not narrowed. "
        "`lag`: events of the log that come after what is acknowledged; `lost`: those of them that left the history.",
        parameters=[RP, OWNER, SORT, docs.CURSOR, docs.LIMIT],
        responses={200: docs.ref("SubscriptionListing")},
    )
    def get(self, request: Request) -> Response:
        """List."""
        rp = self.query("rp")
        found = subscriptions_listed(
            at=descriptor_get(rp).id if rp else None,
            owner=_owner(self.principal, self.query("owner")),
            sort=self.query("sort") or "id",
            cursor=self.query("cursor"),
            limit=self.limit(),
        )
        items = [representations.subscription(it, whole=False) for it in found.items]
        return Response({"items": items, "next": found.next, "complete": found.complete})


class Names(View):
    """The tree of names."""

    @extend_schema(
        operation_id="names_list",
        summary="List one level of the tree of names",
        description="The parts that follow a prefix, with how many rendezvous points have names there or below; at most "
        f"{BRANCHES_MAX} a page. For administrators, operators and viewers.",
        parameters=[BRANCH, docs.CURSOR, docs.LIMIT],
        responses={200: docs.ref("BranchPage")},
    )
    def get(self, request: Request) -> Response:
        """List."""
        require_overseer(self.principal)
        page = names_below(prefix=self.query("prefix"), cursor=self.query("cursor"), limit=self.limit())
        items = [{"part": it.part, "name": it.name, "rps": it.rps, "rp": it.rp} for it in page.items]
        return page_answer(page, items)


def _owner(principal: Principal, asked: str | None) -> str | None:
    """Whose subscriptions are listed; None for everybody's."""
    if oversees(principal):
        return asked
    if principal.narrowed or (asked is not None and asked != principal.identity):
        raise Forbidden(
            "Only who oversees the domain lists others' subscriptions; your own need a token that is not narrowed."
        )
    return principal.identity
