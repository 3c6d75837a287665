"""Lists over the whole domain for operators: leases, durable subscriptions, the tree of names."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.rules.permission import require_overseer
from eventing.core.errors import Forbidden
from eventing.core.principals import Principal
from eventing.core.roles import oversees
from eventing.operations.selectors.endpoints import SORTS as ENDPOINT_SORTS
from eventing.operations.selectors.endpoints import STATES, endpoints_listed
from eventing.operations.selectors.leases import KINDS, leases_page
from eventing.operations.shapes import LeasePage
from eventing.rest import documents as docs
from eventing.rest.base import View, page_answer
from eventing.rest.moments import moment
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.rps.selectors.rendezvous_point_lists import BRANCHES_MAX, names_below
from eventing.rps.shapes import BranchPage
from eventing.subscriptions.api import representations
from eventing.subscriptions.push.shapes import EndpointListing
from eventing.subscriptions.selectors.subscription_lists import LAGS_MAX, LOGS_MAX, SORTS, subscriptions_listed
from eventing.subscriptions.shapes import SubscriptionListing

KIND = OpenApiParameter("kind", str, enum=list(KINDS), description="Only leases of this kind.")
ENDS_BEFORE = OpenApiParameter(
    "ends_before", {"type": "string", "format": "date-time"}, description="Only leases that expire before this time."
)
RP = OpenApiParameter("rp", str, description="Only subscriptions at this rendezvous point, by id or name.")
OWNER = OpenApiParameter("owner", str, description="Only subscriptions of this identity.")
SORT = OpenApiParameter(
    "sort",
    str,
    enum=list(SORTS),
    description=f"`ends`: the lease that expires soonest first; `lag`: the greatest lag first, of at most {LAGS_MAX} "
    f"that match, at {LOGS_MAX} rendezvous points (`complete` states whether that was all); else by id.",
)
STATE = OpenApiParameter(
    "state", str, enum=list(STATES), description="Only endpoints in this state; `troubled`: all that are not active."
)
ENDPOINT_SORT = OpenApiParameter(
    "sort",
    str,
    enum=list(ENDPOINT_SORTS),
    description="`attention`: those that need a person first (the default); `backlog`: the most events not delivered yet, of "
    f"at most {LAGS_MAX} that match; `next`: the soonest next attempt; `id`.",
)
BRANCH = OpenApiParameter("prefix", str, description="Prefix, `/authority/a/`; absent: the names of this domain.")


class LeasesView(View):
    """List of all leases."""

    @extend_schema(
        operation_id="leases_list",
        summary="List leases",
        description="Of rendezvous points, durable subscriptions, replicas and peers together, the soonest to expire "
        "first; for administrators, operators and viewers.",
        parameters=[KIND, ENDS_BEFORE, docs.CURSOR, docs.LIMIT],
        responses={200: LeasePage},
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
        return page_answer(page, page.items)


class SubscriptionsView(View):
    """List of the durable subscriptions of the whole domain."""

    @extend_schema(
        operation_id="subscriptions_list",
        summary="List durable subscriptions",
        description="All subscriptions for administrators, operators and viewers; the caller's own for other "
        "principals whose token is not narrowed. `lag`: events of the log after the acknowledged cursor; `lost`: "
        "those of them that were trimmed from the history.",
        parameters=[RP, OWNER, SORT, docs.CURSOR, docs.LIMIT],
        responses={200: SubscriptionListing},
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
        return Response(SubscriptionListing(items=items, next=found.next, complete=found.complete))


class EndpointsView(View):
    """List of the endpoints of the whole domain."""

    @extend_schema(
        operation_id="endpoints_list",
        summary="List endpoints of push subscriptions",
        description="All endpoints for administrators, operators and viewers; those of the caller's own subscriptions for "
        "other principals whose token is not narrowed.",
        parameters=[RP, OWNER, STATE, ENDPOINT_SORT, docs.CURSOR, docs.LIMIT],
        responses={200: EndpointListing},
    )
    def get(self, request: Request) -> Response:
        """List."""
        rp = self.query("rp")
        items, following, complete = endpoints_listed(
            at=descriptor_get(rp).id if rp else None,
            owner=_owner(self.principal, self.query("owner")),
            state=self.query("state"),
            sort=self.query("sort") or "attention",
            cursor=self.query("cursor"),
            limit=self.limit(),
        )
        return Response(EndpointListing(items=items, next=following, complete=complete))


class NameTreeView(View):
    """The tree of names."""

    @extend_schema(
        operation_id="names_list",
        summary="List one level of the tree of names",
        description="The name parts that follow a prefix, each with the number of rendezvous points named there or "
        f"below; at most {BRANCHES_MAX} a page. For administrators, operators and viewers.",
        parameters=[BRANCH, docs.CURSOR, docs.LIMIT],
        responses={200: BranchPage},
    )
    def get(self, request: Request) -> Response:
        """List."""
        require_overseer(self.principal)
        page = names_below(prefix=self.query("prefix"), cursor=self.query("cursor"), limit=self.limit())
        return page_answer(page, page.items)


def _owner(principal: Principal, asked: str | None) -> str | None:
    """Return the owner whose subscriptions are listed; None for all owners."""
    if oversees(principal):
        return asked
    if principal.narrowed or (asked is not None and asked != principal.identity):
        raise Forbidden(
            "Listing others' subscriptions requires the role administrator, operator or viewer; listing your own "
            "requires a token that is not narrowed."
        )
    return principal.identity
