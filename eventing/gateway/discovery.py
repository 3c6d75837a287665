"""Discovery of the WebSub hub (section 4): the field `Link` in answers about an RP."""

from __future__ import annotations

from eventing.gateway.http import Headers
from eventing.subscriptions.push.services.websub import discovery_field


def discovery_headers(rp: str) -> Headers:
    """Return the field `Link` with hub and topic of an RP; none where nothing is delivered."""
    field = discovery_field(rp)
    return [(b"link", field.encode())] if field else []
