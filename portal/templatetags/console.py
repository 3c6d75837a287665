"""Template tags of the console's frame: navigation, and the notice about unbuilt scripts."""

from __future__ import annotations

from typing import Any

from django import template

from eventing.core.roles import ADMINISTRATOR
from portal.bundle import HOW_TO_BUILD, NOT_BUILT, manifest
from portal.console.pages.navigation import NavigationLink, links

register = template.Library()


@register.simple_tag(takes_context=True)
def navigation(context: dict[str, Any]) -> list[NavigationLink]:
    """The pages to list, the one that is shown marked."""
    request = context.get("request")
    match = getattr(request, "resolver_match", None)
    here = match.url_name or "" if match and match.namespace == "portal" else ""
    return links(here, administrator=context.get("role") == ADMINISTRATOR)


@register.simple_tag
def not_built() -> str:
    """Return the notice for missing scripts; empty where they are built."""
    return "" if manifest() else f"{NOT_BUILT} {HOW_TO_BUILD}."
