"""What the console's tests share: logged-in clients of the pages, and a browser."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from demo.harness.servers import Domain
from tests import scheduling
from tests.gateway.server import Prepared
from tests.portal.console.browsing import CHROMIUM, Console
from tests.portal.console.identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider
from tests.portal.console.people import Person, link_in


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
        settings: dict[str, Any] = {
            "oidc_issuer": provider.issuer,
            "oidc_client_id": CLIENT_ID,
            "oidc_client_secret_file": str(secret),
            "oidc_roles": "watchers=viewer,herald-ops=operator,herald-admins=administrator",
        }
        with scheduling.shared_by("console_domain") as shared:
            yield provider, shared.enter_context(Domain(folder / "var", seed=prepared.migrated, **settings))


@pytest.fixture(scope="session")
def admin(console_domain: tuple[IdentityProvider, Domain]) -> Person:
    """The first administrator of `console_domain`, by the link that `manage.py login_link` prints."""
    domain = console_domain[1]
    return Person(domain).by_link(domain.manage("login_link").stdout.strip())


@pytest.fixture(scope="session")
def invited(admin: Person) -> Callable[..., Person]:
    """Invites `name` with `role` and logs them in by their link; each name is made once."""
    made: dict[str, Person] = {}

    def invite(name: str, role: str = "", *, password: bool = False) -> Person:
        if name not in made:
            person = Person(admin.domain).by_link(link_in(admin.submit("/users/new", {"name": name, "role": role})))
            made[name] = person.set_password() if password else person
        return made[name]

    return invite


@pytest.fixture(scope="module")  # while Playwright runs, an event loop runs in this thread: later modules need theirs
def browser(pytestconfig: pytest.Config) -> Iterator[object]:
    """Chromium; the tests that need it are skipped where it is not installed."""
    Console.slowness = random.Random(pytestconfig.option.order_seed) if pytestconfig.option.slow_pages else None
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
