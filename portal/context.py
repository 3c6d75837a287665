"""What every page's template knows."""

from __future__ import annotations

import time

from django.http import HttpRequest

from eventing.conf import config


def domain(request: HttpRequest) -> dict[str, object]:
    """`domain`: this domain's name; `now_ms`: our clock, so that a page can count down without trusting the reader's."""
    return {"domain": config().domain, "now_ms": int(time.time() * 1000)}
