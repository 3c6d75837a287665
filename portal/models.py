"""What the console stores of its own: open one-time login links."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class LoginLink(models.Model):
    """A link that logs its user in once. Only the hash of its token is kept; a user has one open link at most."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    token_hash = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"login link of user {self.user_id}, until {self.expires_at:%Y-%m-%d %H:%M} UTC"
