"""Request bodies for tokens. Bounds that depend on settings are checked by the services; here is the form."""

from __future__ import annotations

from rest_framework import serializers

from eventing.access.api.fields import Operations
from eventing.access.rules.tokens import PATTERN_CHARS_MAX, PATTERNS_MAX, SCOPES_MAX, SUBJECT_CHARS_MAX
from eventing.rest.fields import LEASE_HELP, StrictBoolean, StrictInteger, StrictObject, StrictString


class Pattern(StrictString):
    """A pattern of RPs, parsed by the service."""


class ScopeRequestSerializer(StrictObject):
    """RPs and the operations permitted there."""

    rps = serializers.ListField(
        child=Pattern(min_length=1, max_length=PATTERN_CHARS_MAX),
        min_length=1,
        max_length=PATTERNS_MAX,
        help_text="Patterns: an id, a name /authority/a/b/, all names under one /authority/a/*, or * for all.",
    )
    ops = Operations(min_length=1)


class TokenCreationSerializer(StrictObject):
    """A token of this domain, created by an administrator for another bearer."""

    subject = StrictString(min_length=1, max_length=SUBJECT_CHARS_MAX, help_text="Subject of the token.")
    admin = StrictBoolean(required=False, default=False, help_text="True for a token that administers the domain.")
    lease_s = StrictInteger(required=False, allow_null=True, help_text=LEASE_HELP)
    ops = Operations(
        required=False, allow_null=True, help_text="Operations to which the token is narrowed; null or absent: all."
    )
    scopes = serializers.ListField(
        child=ScopeRequestSerializer(),
        required=False,
        allow_null=True,
        max_length=SCOPES_MAX,
        help_text="Rendezvous points and operations to which the token is narrowed; null or absent: all.",
    )
    audience = StrictString(
        required=False,
        allow_null=True,
        min_length=1,
        max_length=SUBJECT_CHARS_MAX,
        help_text="Audience of the token; null or absent: this domain. This domain refuses tokens with another audience.",
    )
