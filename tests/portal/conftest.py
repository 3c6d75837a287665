"""What the console's tests share: logged-in clients of the pages, and a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client

CHROMIUM = "/usr/bin/chromium"


@pytest.fixture
def logged_in(redis_url: str) -> Callable[..., Client]:
    """Makes clients of the pages: `logged_in("ann", admin=True)`."""

    def make(name: str = "ann", *, admin: bool = False, csrf: bool = False) -> Client:
        user = User.objects.filter(username=name).first() or User.objects.create_user(name, is_superuser=admin)
        client = Client(enforce_csrf_checks=csrf)
        client.force_login(user)
        return client

    return make


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    """Chromium; the tests that need it are skipped where it is not installed."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        try:
            chromium = driver.chromium.launch(
                executable_path=CHROMIUM, args=["--no-sandbox", "--disable-background-networking"]
            )
        except playwright.Error as error:
            pytest.skip(f"no usable Chromium at {CHROMIUM}: {str(error).splitlines()[0]}")
        yield chromium
        chromium.close()
