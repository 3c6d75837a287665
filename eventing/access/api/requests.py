"""Bodies of requests for tokens. Bounds that depend on settings are the services'; here is the form."""

from __future__ import annotations

from rest_framework import serializers

from eventing.access.api.fields import Operations
from eventing.access.rules.tokens import PATTERN_CHARS_MAX, PATTERNS_MAX, SCOPES_MAX, SUBJECT_CHARS_MAX
from eventing.rest.fields import Integer, Members, Text, Truth
from eventing.rest.requests import LEASE_HELP


class Pattern(Text):
    """A pattern of RPs; the service reads it."""


class ScopeRequest(Members):
    """RPs and what may be done there."""

    rps = serializers.ListField(
        child=Pattern(min_length=1, max_length=PATTERN_CHARS_MAX),
        min_length=1,
        max_length=PATTERNS_MAX,
        help_text="Patterns: an id, a name /authority/a/b/, all names under one /authority/a/*, or * for all.",
    )
    ops = Operations(min_length=1)


class TokenCreation(Members):
    """A token of this domain, for administrators to hand out."""

    subject = Text(min_length=1, max_length=SUBJECT_CHARS_MAX, help_text="Who it speaks for.")
    admin = Truth(required=False, default=False, help_text="Whether it administers the domain.")
    lease_s = Integer(required=False, allow_null=True, help_text=LEASE_HELP)
    ops = Operations(required=False, allow_null=True, help_text="Operations it is narrowed to; null or absent: all.")
    scopes = serializers.ListField(
        child=ScopeRequest(),
        required=False,
        allow_null=True,
        max_length=SCOPES_MAX,
        help_text="Rendezvous points and operations it is narrowed to; null or absent: all.",
    )
    audience = Text(
        required=False,
        allow_null=True,
        min_length=1,
        max_length=SUBJECT_CHARS_MAX,
        help_text="Whom it is for; null or absent: this domain. A token for another is not accepted here.",
    )
