"""Which other domains' tokens count here, in the memory of this process: asked for every request, so without I/O.

It is read from SQL together with the revocations (access/verification/revocations.py): when a change of a peer is announced, and
every few seconds anyway. So a peer that is suspended or removed is shut out as a revoked token is: at the next request,
and its bearers' connections are closed. A name that is made up costs nothing.
"""

from __future__ import annotations

from eventing.access.ports import token_issuers
from eventing.access.rules.token_issuers import TokenIssuers, is_domain
from eventing.core.principals import Principal


class PeerIssuers:
    """See the module. Read by many threads, written by whoever looks."""

    def __init__(self) -> None:
        self._known = TokenIssuers()

    def look(self) -> bool:
        """Read SQL; whether anything is different from before. Raises django.db.Error."""
        fresh = token_issuers()
        changed, self._known = fresh != self._known, fresh
        return changed

    def forget(self) -> None:
        """Forget everything, as when the process began."""
        self._known = TokenIssuers()

    def accepts(self, name: str) -> bool:
        """Whether tokens of the domain `name` (not this one) count."""
        return name in self._known.accepted

    def refusal(self, name: str) -> str | None:
        """Why tokens of the domain do not count, in a sentence for their bearers; None if they do."""
        if name in self._known.accepted:
            return None
        if name in self._known.suspended:
            return f"The domain {name} is suspended here, and its tokens with it. Ask this domain's administrator."
        return f"The domain {name} is no peer of this one (any more)."

    def refuses(self, principal: Principal) -> str | None:
        """As `refusal`, for a principal that was verified before, of whatever issuer."""
        if principal.local or not is_domain(principal.issuer):
            return None
        return self.refusal(principal.issuer)
