"""Check of the object stores that have access records and reports."""

from __future__ import annotations

from eventing.core.config import Config
from portal.supervisor.diagnosis.findings import DiagnosisFinding, fail, ok
from spark.locations import Location
from spark.problems import JobProblem

_SUBJECT = "object store"


def object_store_findings(config: Config) -> list[DiagnosisFinding]:
    """Look into each store that is set: one finding each, none where folders are used. May take as long as a store does not answer."""
    stores = (("HERALD_RECORDS_DIR", config.records_url), ("HERALD_REPORTS_DIR", config.reports_place))
    return [_finding(setting, address) for setting, address in stores if "://" in address]


def _finding(setting: str, address: str) -> DiagnosisFinding:
    try:
        place = Location(address)
        place.entries(place.root)
    except (OSError, JobProblem) as error:
        says = (str(error).splitlines() or [type(error).__name__])[0][:200]
        return fail(_SUBJECT, f"{setting} cannot be read: {says}", "Check the address, the bucket and the credentials.")
    return ok(_SUBJECT, f"{setting} can be read")
