"""Template variables of every page."""

from __future__ import annotations

import time

from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject
from django.utils.timezone import now

from admin_rp import catalogue
from eventing.access.selectors.console_users import role_of
from eventing.conf import config
from eventing.operations.selectors.alarms import alarms_counted
from portal.installation import server_command


def domain(request: HttpRequest) -> dict[str, object]:
    """Return `domain`: this domain's name; `now_ms`: the server's clock, so that countdowns do not depend on the
    reader's clock; `role`: role of the logged-in user, looked up only where a page uses it; `alarms_open`: counts of the alarms that are
    open and not muted, likewise; `server_command`: how the server's commands begin on its machine; `catalogue`: the address of
    the catalogue of administrative events as it is now, which a browser keeps until there is another.
    """
    user = getattr(request, "user", None)
    role = SimpleLazyObject(lambda: role_of(user) if user is not None else "")
    return {
        "domain": config().domain,
        "now_ms": int(time.time() * 1000),
        "role": role,
        "alarms_open": SimpleLazyObject(lambda: alarms_counted(now())),
        "server_command": server_command(),
        "catalogue": f"{reverse('admin-catalogue')}?v={catalogue.etag()}",
    }
