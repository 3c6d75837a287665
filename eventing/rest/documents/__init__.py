"""The OpenAPI description's parts that are data: parameters, and the forms of answers, a module per group of resources."""

from __future__ import annotations

from eventing.rest.documents.forms import ref
from eventing.rest.documents.parameters import (
    CURSOR,
    CURSOR_PATTERN,
    ETAG,
    ID_EXAMPLE,
    IDEMPOTENCY_KEY,
    IF_MATCH,
    LIMIT,
    LOCATION,
    PREFIX,
    REFERENCE,
    REFERENCE_BEFORE_ACTION,
    REFERENCE_BEFORE_ACTION_SCHEMA,
    REFERENCE_SCHEMA,
    SORT,
    SUBSCRIPTION_ID,
    SUBSCRIPTION_ID_SCHEMA,
    Q,
)

__all__ = [
    "CURSOR",
    "CURSOR_PATTERN",
    "ETAG",
    "IDEMPOTENCY_KEY",
    "ID_EXAMPLE",
    "IF_MATCH",
    "LIMIT",
    "LOCATION",
    "PREFIX",
    "REFERENCE",
    "REFERENCE_BEFORE_ACTION",
    "REFERENCE_BEFORE_ACTION_SCHEMA",
    "REFERENCE_SCHEMA",
    "SORT",
    "SUBSCRIPTION_ID",
    "SUBSCRIPTION_ID_SCHEMA",
    "Q",
    "ref",
]
