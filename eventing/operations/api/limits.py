"""/api/v1/limits: what is limited, for whoever asks, and how far it is used."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.rules.limits import Account, Limits, LimitState
from eventing.conf import config
from eventing.core.roles import oversees
from eventing.operations.selectors.holdings import held_by, held_in_domain
from eventing.rest import documents as docs
from eventing.rest.base import View
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.rps.services.permission import require
from eventing.subscriptions.selectors.quotas import subscriptions_at

RP = OpenApiParameter(
    "rp",
    {"type": "string", "maxLength": 1100, "examples": [docs.ID_EXAMPLE]},
    description="Id or name of a rendezvous point whose limits are wanted as well.",
)


class LimitsView(View):
    """The limits of the caller; of a rendezvous point too if the query names one, of the domain for who oversees it."""

    @extend_schema(
        operation_id="limits_get",
        summary="Read your limits",
        description="Each limit, how far it is used, what remains, and in how many seconds a rate is wholly yours again. "
        "Rates and connections are those of the gateway process that answers, its share of the domain's; what is kept is "
        "counted for the whole domain. `limit` null: none. `domain` is null for all but administrators, operators "
        "and viewers, `rp` without `rp` in the query.",
        parameters=[RP],
        responses={200: docs.ref("Limits")},
    )
    def get(self, request: Request) -> Response:
        """Read."""
        who, asked = self.principal, self.query("rp")
        scope: dict[str, Any] = getattr(request._request, "scope", {})
        limits: Limits | None = scope.get("herald.limits")
        account: Account | None = scope.get("herald.account")
        mine = limits.of_account(account) if limits and account else []
        document = {
            "principal": who.identity,
            "counted_as": "address" if account is None or account.address else "principal",
            "gateways": config().gateways,
            "limits": _documents([*mine, *_kept_by(who.identity, exempt=who.admin)]),
            "rp": None if asked is None else _documents(self._of_rp(asked, limits)),
            "domain": _documents(_of_domain(limits)) if oversees(who) else None,
        }
        return Response(document, headers={"Cache-Control": "no-store"})

    def _of_rp(self, reference: str, limits: Limits | None) -> list[LimitState]:
        descriptor = descriptor_get(reference)
        require(descriptor, self.principal, "describe")
        rates = limits.of_rp(descriptor.id) if limits else []
        used = subscriptions_at(descriptor.id)
        return [*rates, _kept("rp-subscriptions", "subscriptions", config().subscriptions_per_rp_max, used)]


def _kept_by(identity: str, *, exempt: bool) -> list[LimitState]:
    """The quotas of a principal; administrators have none of their own."""
    held, settings = held_by(identity), config()
    limits = (
        ("rps", "rendezvous points", settings.rps_per_principal, held.rps),
        ("history-bytes", "bytes", settings.history_bytes_per_principal, held.history_bytes),
        ("subscriptions", "subscriptions", settings.subscriptions_per_principal, held.subscriptions),
    )
    return [_kept(name, unit, 0 if exempt else most, used) for name, unit, most, used in limits]


def _of_domain(limits: Limits | None) -> list[LimitState]:
    held, settings = held_in_domain(), config()
    return [
        *(limits.of_domain() if limits else []),
        _kept("domain-rps", "rendezvous points", settings.rps_max, held.rps),
        _kept("domain-history-bytes", "bytes", settings.history_quota_bytes, held.history_bytes),
        _kept("domain-subscriptions", "subscriptions", 0, held.subscriptions),
    ]


def _kept(name: str, unit: str, most: int, used: int) -> LimitState:
    remaining = max(0, most - used) if most else None
    return LimitState(name, unit, most or None, used, remaining, counted="domain")


def _documents(states: list[LimitState]) -> list[dict[str, Any]]:
    return [asdict(state) for state in states]
