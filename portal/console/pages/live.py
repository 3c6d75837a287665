"""What the console's scripts ask: a token for the WebSocket, and where the logs end, from which they compute rates."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_GET, require_POST

from eventing.access.services.tokens import token_create
from eventing.access.verification.console_users import role_of
from eventing.core.roles import operations_of
from eventing.operations.selectors.console import EXTENTS_MAX, rendezvous_points_listed
from portal.console.accounts.addresses import address_of
from portal.console.pages.access import current_user, endpoint, principal_of

TOKEN_S = 600
"""How long a console token lasts. The page gets another for each connection; a stolen one is worth little for long."""

TOLD = "token_told"
"""Session key: the client's address and the role with which the audit has a token of this session already."""


@endpoint
@require_POST
def token(request: HttpRequest) -> HttpResponse:
    """A token of the logged-in user, with no more rights than their role: {"token", "expires_at"}.

    It is the session in the form that a WebSocket takes. So the audit has the first one of a session, and the first from
    another address or with another role; those of further pages say nothing new, and would bury what does.
    """
    user = current_user(request)
    role = role_of(user)
    operations = operations_of(role) if role else None
    telling = [address_of(request), role]
    begins = request.session.get(TOLD) != telling
    issued = token_create(
        subject=user.get_username(),
        admin=bool(role),
        lease_s=TOKEN_S,
        operations=None if operations is None else sorted(operations),
        principal=principal_of(user),
        recorded=begins,
    )
    if begins:
        request.session[TOLD] = telling
    return JsonResponse({"token": issued.token, "expires_at": issued.expires_at.isoformat()})


@endpoint
@require_GET
def rates(request: HttpRequest) -> HttpResponse:
    """The ends of the logs of `?ids=a,b`: {id: {"epoch", "offset" of the last event, "first", "bytes"}}."""
    ids = request.GET.get("ids", "").split(",", EXTENTS_MAX)[:EXTENTS_MAX]
    listed = rendezvous_points_listed(principal=principal_of(current_user(request)), ids=ids)
    return JsonResponse(
        {
            item.rp.id: {
                "epoch": item.log.epoch,
                "offset": item.log.next - 1,
                "first": item.log.first,
                "bytes": item.log.bytes,
            }
            for item in listed
            if item.log
        }
    )
