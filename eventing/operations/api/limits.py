"""/api/v1/limits: the caller's limits, and how far they are used."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.rules.limits import Account, LimitAnswer, Limits
from eventing.conf import config
from eventing.core.roles import oversees
from eventing.operations.selectors.holdings import held_by, held_in_domain
from eventing.operations.shapes import LimitsAnswer
from eventing.rest import documents as docs
from eventing.rest.base import View
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.rps.services.permission import require
from eventing.subscriptions.selectors.quotas import subscriptions_at

RP = OpenApiParameter(
    "rp",
    {"type": "string", "maxLength": 1100, "examples": [docs.ID_EXAMPLE]},
    description="Id or name of a rendezvous point whose limits to include.",
)


class LimitsView(View):
    """The limits of the caller; of a rendezvous point too if the query names one; of the domain for principals with
    oversight.
    """

    @extend_schema(
        operation_id="limits_get",
        summary="Read your limits",
        description="Each limit with its use, the remainder, and the seconds until a rate is wholly available again. "
        "Rates and connections are those of the answering gateway process, its share of the domain's; stored "
        "objects are counted for the whole domain. `limit` null: none. `domain` is null for all but "
        "administrators, operators and viewers; `rp` is null without `rp` in the query.",
        parameters=[RP],
        responses={200: LimitsAnswer},
    )
    def get(self, request: Request) -> Response:
        """Return the limits."""
        who, asked = self.principal, self.query("rp")
        scope: dict[str, Any] = getattr(request._request, "scope", {})
        limits: Limits | None = scope.get("herald.limits")
        account: Account | None = scope.get("herald.account")
        mine = limits.of_account(account) if limits and account else []
        document = LimitsAnswer(
            principal=who.identity,
            counted_as="address" if account is None or account.address else "principal",
            gateways=config().gateways,
            limits=[*mine, *_kept_by(who.identity, exempt=who.admin)],
            rp=None if asked is None else self._of_rp(asked, limits),
            domain=_of_domain(limits) if oversees(who) else None,
        )
        return Response(document, headers={"Cache-Control": "no-store"})

    def _of_rp(self, reference: str, limits: Limits | None) -> list[LimitAnswer]:
        descriptor = descriptor_get(reference)
        require(descriptor, self.principal, "describe")
        rates = limits.of_rp(descriptor.id) if limits else []
        used = subscriptions_at(descriptor.id)
        return [*rates, _kept("rp-subscriptions", "subscriptions", config().subscriptions_per_rp_max, used)]


def _kept_by(identity: str, *, exempt: bool) -> list[LimitAnswer]:
    """Return the quotas of a principal; administrators have none of their own."""
    held, settings = held_by(identity), config()
    limits = (
        ("rps", "rendezvous points", settings.rps_per_principal, held.rps),
        ("history-bytes", "bytes", settings.history_bytes_per_principal, held.history_bytes),
        ("subscriptions", "subscriptions", settings.subscriptions_per_principal, held.subscriptions),
    )
    return [_kept(name, unit, 0 if exempt else most, used) for name, unit, most, used in limits]


def _of_domain(limits: Limits | None) -> list[LimitAnswer]:
    held, settings = held_in_domain(), config()
    return [
        *(limits.of_domain() if limits else []),
        _kept("domain-rps", "rendezvous points", settings.rps_max, held.rps),
        _kept("domain-history-bytes", "bytes", settings.history_quota_bytes, held.history_bytes),
        _kept("domain-subscriptions", "subscriptions", 0, held.subscriptions),
    ]


def _kept(name: str, unit: str, most: int, used: int) -> LimitAnswer:
    remaining = max(0, most - used) if most else None
    return LimitAnswer(name, unit, most or None, used, remaining, None, None, "domain")
