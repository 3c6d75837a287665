"""What the form for watch rules is made from: the kinds of rules, as core/operating/watches.py defines them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from eventing.core.operating.watches import FOR_S_DEFAULT, KINDS, SEVERITIES


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
