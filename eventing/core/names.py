"""Hierarchical names, `/authority/a/b/`: a directory on top of the ids. The authority is the domain that owns the name.

A name always begins and ends with a slash, so a name followed by an action in a URL is never ambiguous, and a prefix
(`/authority/a/`) denotes the subtree below it.
"""

from __future__ import annotations

import re

from eventing.core.errors import InvalidRequest
from eventing.core.ids import ADMIN_SUFFIX, DOMAIN_ADMINS, RP_ID_PATTERN

NAME_CHARS_MAX = 255  # bound: characters of an RP's name; the name is refused: `invalid-request`
SEGMENTS_MAX = 16  # bound: segments of an RP's name; the name is refused: `invalid-request`
DOMAIN_PATTERN = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")  # a domain's name is a host name, lower case
ZONE_PATTERN = re.compile(r"([a-z0-9]([a-z0-9.-]{0,30}[a-z0-9])?)?", re.ASCII)  # a zone or an operator; empty for none
_SEGMENT = re.compile(r"[A-Za-z0-9._~-]{1,64}")


def normalise(text: str, authority: str) -> str:
    """Make the full name from user input; a name without leading slash is placed under `authority`.

    Raises InvalidRequest, naming the broken rule.
    """
    path = text if text.startswith("/") else f"/{authority}/{text}"
    path = path if path.endswith("/") else path + "/"
    if len(path) > NAME_CHARS_MAX:
        raise InvalidRequest(f"A name has at most {NAME_CHARS_MAX} characters.")
    segments = path[1:-1].split("/")
    if not 2 <= len(segments) <= SEGMENTS_MAX:
        raise InvalidRequest(f"A name is /authority/a/b/ with 2 to {SEGMENTS_MAX} parts.")
    for segment in segments:
        if not _SEGMENT.fullmatch(segment) or segment in (".", ".."):
            raise InvalidRequest("Each part of a name is 1 to 64 letters, digits or . _ ~ - characters.")
    return path


def is_id(reference: str) -> bool:
    """Return True if `reference` has the form of an RP id (including administrative RPs) rather than of a name."""
    if reference in DOMAIN_ADMINS:
        return True
    return RP_ID_PATTERN.fullmatch(reference.removesuffix(ADMIN_SUFFIX)) is not None
