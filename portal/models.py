"""All tables of the app, for Django. Other modules import models from portal/accounts."""

from __future__ import annotations

from portal.accounts.models import ConsoleSession, DeviceLogin, ExternalIdentity, LoginAttempts, LoginLink

__all__ = ["ConsoleSession", "DeviceLogin", "ExternalIdentity", "LoginAttempts", "LoginLink"]
