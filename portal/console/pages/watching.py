"""Watch rules for the page of an RP: their kinds, as rps/rules/watches.py defines them, and the rules about loss that
apply where an RP has none of its own."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from eventing.rps.rules.watches import FOR_S_DEFAULT, KINDS, LOSS, LOSS_BUILT_IN, SEVERITIES
from eventing.rps.selectors.watches import domain_watches


def watch_kinds() -> dict[str, Any]:
    """`kinds` that an RP may have, by name: {"about", "limits": {name: {"low", "high", "unit", "about"}}, "filters": {name: about}};
    `severities`; `for_s`, the default.
    """
    kinds = {
        name: {
            "about": kind.about,
            "limits": {limit: asdict(of) for limit, of in kind.limits.items()},
            "filters": dict(kind.filters),
        }
        for name, kind in KINDS.items()
        if kind.rp
    }
    return {"kinds": kinds, "severities": list(SEVERITIES), "for_s": FOR_S_DEFAULT}


def loss_rules_given() -> dict[str, Any]:
    """Return `by`: domain or built-in, and `rules`: rules about loss that apply to RPs without their own."""
    own = domain_watches()
    stated = [one for one in own.watch if LOSS in one] if own is not None else []
    return {"by": "domain", "rules": stated} if stated else {"by": "built-in", "rules": [dict(LOSS_BUILT_IN)]}
