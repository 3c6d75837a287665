"""Tables of the console: one-time login links, logins of programs, sessions as shown to their users, login attempts, and external
identities."""

from __future__ import annotations

from django.conf import settings
from django.db import models

KEY_CHARS = 64
AGENT_CHARS_MAX = 200
ADDRESS_CHARS_MAX = 64
CLIENT_CHARS_MAX = 100
ISSUER_CHARS_MAX = 255
SUBJECT_CHARS_MAX = 255


class LoginLink(models.Model):
    """A one-time login link. Only the hash of its token is stored; a user has one open link at most."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    token_hash = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"login link of user {self.user_id}, until {self.expires_at:%Y-%m-%d %H:%M} UTC"


class DeviceLogin(models.Model):
    """A request of a program to be logged in, until it is decided and taken, or expires (services/device_logins.py).

    Attributes:
        user: who has decided; None while nobody has.
    """

    device_hash = models.CharField(max_length=64, unique=True)
    user_code = models.CharField(max_length=8, unique=True)
    client = models.CharField(max_length=CLIENT_CHARS_MAX)
    address = models.CharField(max_length=ADDRESS_CHARS_MAX)
    expires_at = models.DateTimeField(db_index=True)
    polled_at = models.DateTimeField(null=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+")
    approved = models.BooleanField(default=False)
    with_role = models.BooleanField(default=False)
    lease_s = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"login of {self.client}, until {self.expires_at:%Y-%m-%d %H:%M} UTC"


class ConsoleSession(models.Model):
    """A logged-in session that its user can see and end; Django's own row does not reference a user."""

    session_key = models.CharField(max_length=40, unique=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    address = models.CharField(max_length=ADDRESS_CHARS_MAX)
    agent = models.CharField(max_length=AGENT_CHARS_MAX)

    def __str__(self) -> str:
        return f"session of user {self.user_id} since {self.started_at:%Y-%m-%d %H:%M} UTC"


class LoginAttempts(models.Model):
    """Failed logins that share an account, an address, or both. The key is a keyed hash: people type passwords as names."""

    key = models.CharField(max_length=KEY_CHARS, unique=True)
    failures = models.PositiveIntegerField(default=0)
    failed_at = models.DateTimeField()
    locked_until = models.DateTimeField(null=True)
    succeeded_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["failed_at"], name="login_attempts_failed_at")]

    def __str__(self) -> str:
        return f"{self.failures} failed logins, the last at {self.failed_at:%Y-%m-%d %H:%M} UTC"


class ExternalIdentity(models.Model):
    """Identity of a user at an identity provider: the pair of issuer and subject, never an e-mail address."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="external_identity")
    issuer = models.CharField(max_length=ISSUER_CHARS_MAX)
    subject = models.CharField(max_length=SUBJECT_CHARS_MAX)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="external_identity_is_one_user")]

    def __str__(self) -> str:
        return f"user {self.user_id} at {self.issuer}"
