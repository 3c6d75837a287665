"""Template filters for the names of rendezvous points."""

from __future__ import annotations

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

register = template.Library()


@register.filter
def breakable(name: str) -> SafeString:
    """Return `name` with optional line breaks after its slashes for narrow screens."""
    return mark_safe(str(escape(name)).replace("/", "/<wbr>"))  # noqa: S308 - escaped just before
