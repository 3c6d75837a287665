"""Check of what makes the domain weak (portal/security.py)."""

from __future__ import annotations

from eventing.core.config import Config
from portal.security import is_exposed, weaknesses
from portal.supervisor.diagnosis.findings import Finding, fail, ok, warn


def security_findings(config: Config) -> list[Finding]:
    """Each weakness: a failure where it would refuse the start, a warning where it is only this machine's."""
    exposed = is_exposed(config)
    found = [
        (fail if weakness.grave and exposed else warn)(weakness.subject, weakness.says, weakness.do)
        for weakness in weaknesses(config)
    ]
    reach = "others reach this domain" if exposed else "only this machine reaches this domain"
    return found or [ok("security", f"{reach}; no weak secret, no open file found")]
