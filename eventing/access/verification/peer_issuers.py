"""Other domains whose tokens are accepted, in the memory of this process: checked for every request, so without I/O.

They are read from SQL together with the revocations (access/verification/revocations.py): when a change of a peer is
announced, and every few seconds anyway. So the tokens of a suspended or removed peer end like revoked ones: they are
refused at the next request, and their connections are closed. An invented name costs nothing.
"""

from __future__ import annotations

from eventing.access.ports import token_issuers
from eventing.access.rules.token_issuers import TokenIssuers, is_domain
from eventing.core.principals import Principal


class PeerIssuers:
    """Domains whose tokens are accepted. Read by many threads, written by the one that reads SQL."""

    def __init__(self) -> None:
        self._known = TokenIssuers()

    def refresh(self) -> bool:
        """Read SQL; return True if anything changed. Raises django.db.Error."""
        fresh = token_issuers()
        changed, self._known = fresh != self._known, fresh
        return changed

    def accepts(self, name: str) -> bool:
        """Return True if tokens of the domain `name` (not this one) are accepted."""
        return name in self._known.accepted

    def refusal(self, name: str) -> str | None:
        """Return the reason why tokens of the domain are refused, in a sentence for their bearers; None if they are accepted."""
        if name in self._known.accepted:
            return None
        if name in self._known.suspended:
            return f"The domain {name} is suspended here, and its tokens are refused. Ask this domain's administrator."
        return f"The domain {name} is no peer (or no longer one) of this domain."

    def refuses(self, principal: Principal) -> str | None:
        """Return `refusal` for a principal that was verified before, of whatever issuer."""
        if principal.local or not is_domain(principal.issuer):
            return None
        return self.refusal(principal.issuer)
