"""The planners of placement and of routes of a domain, over REST: `client.plan`. Reading requires a viewer's token, changes an operator's."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from herald.rest import Rest

_PLAN = "/api/v1/plan"


class PlacementPlans:
    """Shows planners and decisions, runs them dry, approves and rejects, switches and bounds. All methods raise HeraldError."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def show(self, reference: str | None = None) -> dict[str, Any]:
        """Return the state of the planner; with a reference the switch and bounds of one RP."""
        return await self._rest.members("GET", _of(reference), again=True)

    async def bound(self, reference: str | None = None, **members: Any) -> dict[str, Any]:
        """Change switch and bounds, of an RP or of the domain; `members` as of PATCH /api/v1/plan."""
        return await self._rest.members("PATCH", _of(reference), members, again=True)

    async def decisions(self, **query: Any) -> dict[str, Any]:
        """Return a page of decisions, newest first: `items`, `next`. `query`: `state`, `rp`, `cursor`, `limit`."""
        return await self._rest.page(f"{_PLAN}/decisions", query)

    async def decision(self, decision: str) -> dict[str, Any]:
        """Return a decision with its inputs, its reason and its progress."""
        return await self._rest.members("GET", f"{_PLAN}/decisions/{quote(decision, safe='')}", again=True)

    async def approve(self, decision: str) -> dict[str, Any]:
        """Have a proposal carried out. Returns the decision."""
        return await self._rest.members(
            "POST", f"{_PLAN}/decisions/{quote(decision, safe='')}/approve", {}, again=False
        )

    async def reject(self, decision: str, *, note: str = "") -> dict[str, Any]:
        """Reject a decision that is not under way. Returns the decision."""
        path = f"{_PLAN}/decisions/{quote(decision, safe='')}/reject"
        return await self._rest.members("POST", path, {"note": note}, again=False)

    async def invitations(self) -> dict[str, Any]:
        """Return the standing policy for invitations, and the invitations received last."""
        return await self._rest.members("GET", f"{_PLAN}/invitations", again=True)

    async def invitations_bound(self, **members: Any) -> dict[str, Any]:
        """Change the standing policy; `members` as of PATCH /api/v1/plan/invitations. Returns it."""
        return await self._rest.members("PATCH", f"{_PLAN}/invitations", members, again=True)

    async def preview(self) -> dict[str, Any]:
        """Run the planner of placement dry. Returns what it would do now; nothing is recorded."""
        return await self._rest.members("GET", f"{_PLAN}/preview", again=True)

    async def homes(self) -> dict[str, Any]:
        """Return the homes that moved, and who elects successors: `items`, `complete`; and `proofs` that one was handed over twice."""
        return await self._rest.members("GET", f"{_PLAN}/homes", again=True)

    async def routes(self) -> dict[str, Any]:
        """Return the planner of routes: its switch, and the plans of RPs with a target reliability."""
        return await self._rest.members("GET", f"{_PLAN}/routes", again=True)

    async def routes_switch(self, reference: str | None = None, *, mode: str | None) -> dict[str, Any]:
        """Switch the planner of routes, for an RP or the domain; None: as the domain, or its setting. Returns the switch."""
        body = {"mode": mode}
        if reference is None:
            found = await self._rest.members("PATCH", f"{_PLAN}/routes", body, again=True)
            switch: dict[str, Any] = found["switch"]
            return switch
        return await self._rest.members("PATCH", _routes_of(reference), body, again=True)

    async def routes_preview(self, reference: str, *, target: float | None = None) -> dict[str, Any]:
        """Run the planner of routes dry for an RP, with its target or another one. Returns the plan; nothing is recorded."""
        query = "" if target is None else f"?target={target!r}"
        return await self._rest.members("GET", f"{_routes_of(reference)}{query}", again=True)


def _routes_of(reference: str) -> str:
    return f"{_PLAN}/routes/{quote(reference, safe='')}"


def _of(reference: str | None) -> str:
    return _PLAN if reference is None else f"{_PLAN}/rps/{quote(reference, safe='')}"
