"""Check of the domain's signing key."""

from __future__ import annotations

from django.db import DatabaseError

from eventing.access.selectors.keys import signing_key, verification_keys
from portal.supervisor.diagnosis.findings import Finding, fail, ok, warn


def key_finding() -> Finding:
    """Whether the domain can sign tokens now."""
    try:
        signing, verifying = signing_key(), verification_keys()
    except DatabaseError:  # no table yet, or no database: the database's own finding says which
        return ok("keys", "not made yet (make run makes the first)")
    if signing is not None:
        return ok("keys", f"{signing['kid']} signs; {len(verifying)} verify")
    if verifying:
        return fail("keys", "No key signs now, so no token can be issued.", "make run makes a new one.")
    return warn("keys", "The domain has no key yet.", "make run makes the first.")
