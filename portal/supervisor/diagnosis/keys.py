"""Check of the domain's signing key."""

from __future__ import annotations

from django.db import DatabaseError

from eventing.access.selectors.keys import signing_key, verification_keys
from portal.supervisor.diagnosis.findings import DiagnosisFinding, fail, ok, warn


def key_finding() -> DiagnosisFinding:
    """Check that the domain can sign tokens."""
    try:
        signing, verifying = signing_key(), verification_keys()
    except DatabaseError:  # no table yet, or no database: the finding about the database states which
        return ok("keys", "none yet (make run creates the first key)")
    if signing is not None:
        return ok("keys", f"{signing['kid']} signs; {len(verifying)} verify")
    if verifying:
        return fail("keys", "No signing key is valid now, so no token can be issued.", "make run creates a new key.")
    return warn("keys", "The domain has no key yet.", "make run creates the first key.")
