"""Check for weaknesses of the domain (portal/security.py)."""

from __future__ import annotations

from eventing.core.config import Config
from portal.security import is_exposed, weaknesses
from portal.supervisor.diagnosis.findings import DiagnosisFinding, fail, ok, warn


def security_findings(config: Config) -> list[DiagnosisFinding]:
    """Return each weakness: a failure where it would refuse the start, else a warning."""
    exposed = is_exposed(config)
    found = [
        (fail if weakness.grave and exposed else warn)(weakness.subject, weakness.says, weakness.do)
        for weakness in weaknesses(config)
    ]
    reach = "other machines can reach this domain" if exposed else "only this machine can reach this domain"
    return found or [ok("security", f"{reach}; no weak secrets, no readable private files")]
