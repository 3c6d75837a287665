"""Errors: every code is stable, unique and fit for a problem document."""

from __future__ import annotations

import re

from eventing.core import errors
from eventing.core.errors import ApplicationError, QuotaExceeded

FAMILY = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, ApplicationError) and kind is not ApplicationError
]


def test_every_error_has_its_own_code_and_a_status_for_it() -> None:
    codes = [kind.code for kind in FAMILY]
    assert len(set(codes)) == len(codes) > 10
    for kind in FAMILY:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", kind.code)
        assert kind.status == 307 or 400 <= kind.status < 600
        assert kind.title


def test_problem_document_has_the_members_of_rfc_9457_and_extras() -> None:
    error = QuotaExceeded("No room.", limit=5, retry_after_s=3)
    assert error.document() == {
        "type": "urn:herald:problem:quota-exceeded",
        "title": "Quota exceeded",
        "status": 409,
        "detail": "No room.",
        "limit": 5,
    }
    assert error.retry_after_s == 3
