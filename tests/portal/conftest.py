"""What the console's tests share: logged-in clients of the pages, and a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests import scheduling
from tests.edge.server import Prepared
from tests.portal.browsing import CHROMIUM
from tests.portal.identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider
from tests.servers import Domain


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
def console_domain(
    tmp_path_factory: pytest.TempPathFactory, prepared: Prepared
) -> Iterator[tuple[IdentityProvider, Domain]]:
    """A running domain whose console also takes logins of a provider: leave it running, use users of your own."""
    folder = tmp_path_factory.mktemp("console")
    secret = folder / "client_secret"
    secret.touch(mode=0o600)
    secret.write_text(CLIENT_SECRET + "\n")
    with IdentityProvider() as provider:
        settings = {
            "oidc_issuer": provider.issuer,
            "oidc_client_id": CLIENT_ID,
            "oidc_client_secret_file": str(secret),
            "oidc_roles": "watchers=viewer,herald-ops=operator,herald-admins=administrator",
        }
        with scheduling.shared_by("console_domain") as shared:
            yield provider, shared.enter_context(Domain(folder / "var", seed=prepared.migrated, **settings))


@pytest.fixture(scope="module")  # while Playwright runs, an event loop runs in this thread: later modules need theirs
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
