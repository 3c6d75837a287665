"""Django's authentication backend that sessions of the identity provider's users name."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import ModelBackend


class Backend(ModelBackend):
    """Loads the user of a session while the user is active. Installed only while HERALD_OIDC_ISSUER is set: without the
    setting the sessions end. Logins are in flow.py."""

    def authenticate(self, *_: Any, **__: Any) -> None:
        """No user, whatever the credentials."""
