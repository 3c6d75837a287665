"""Safe by default: headers of every answer, what a Host header cannot do, and starts that are refused."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.test import Client, RequestFactory, override_settings
from django.urls import URLPattern, URLResolver, get_resolver
from django.views.defaults import server_error

from demo.harness.servers import Domain, manage
from eventing.conf import config
from eventing.core.config import Config
from portal.accounts.services.login_links import login_link_create
from portal.accounts.services.roles import role_store
from portal.middleware import SecurityHeaders, SessionLife
from portal.security import Weakness, is_exposed, refusal, warnings, weaknesses
from portal.supervisor.diagnosis.checks import security_findings
from portal.supervisor.diagnosis.settings_table import settings_in_use
from tests.gateway.server import PLAIN

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
}
GOOD_KEY = "kJ8vQ2xWm5Zt0Lr7Hb3Nc6Yd9Fg1PsTu"
EXPOSED = {"public_url": "https://herald.example.org", "host": "0.0.0.0"}
RANDOM = "zX81-qPw7_Lm"


def protected(response: Any, *, page: bool) -> None:
    """Every header is there, with a policy that lets nothing inline run."""
    for name, value in HEADERS.items():
        assert response.headers[name] == value
    assert "camera=()" in response.headers["Permissions-Policy"]
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert ("script-src 'self'" in policy) is page


# -- every address ------------------------------------------------------------------------------------------------------


def addresses(patterns: list[Any] | None = None, prefix: str = "/") -> Iterator[str]:
    """An address for each pattern of the URLconf, with something in place of what is variable."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        text = str(pattern.pattern)
        text = re.sub(r"<int:\w+>", "1", re.sub(r"<\w+:\w+>|<\w+>", "nothing", text))
        text = re.sub(r"[\^$]|\\Z|\(\?:.*\)", "", text).replace("\\", "")
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern.url_patterns, prefix + text)
        elif isinstance(pattern, URLPattern):
            yield prefix + text


@pytest.mark.django_db
@pytest.mark.usefixtures("redis_url")
@pytest.mark.parametrize("who", ["a stranger", "a user", "an administrator"])
def test_every_address_of_the_urlconf_answers_with_the_headers(logged_in: Callable[..., Client], who: str) -> None:
    walked = sorted(set(addresses()))
    assert len(walked) >= 25
    assert {"/users", "/login", "/login/oidc", "/console/session", "/.well-known/jwks.json"} <= set(walked)
    pages = 0
    client = Client()  # one for all that keep its session: each new one walks all static files
    for address in walked:
        for method in ("get", "post", "delete"):
            if who != "a stranger" and "_auth_user_id" not in client.session:
                client = logged_in("ann", admin=who == "an administrator")
            response = getattr(client, method)(address)
            page = response.headers.get("Content-Type", "text/html").startswith("text/html")
            protected(response, page=page)
            pages += page
    assert pages >= 30


@pytest.mark.django_db
def test_error_pages_of_every_status_have_them_too(logged_in: Callable[..., Client]) -> None:
    client = logged_in("ann")
    csrf = Client(enforce_csrf_checks=True)
    for response, status in (
        (client.get("/", headers={"Host": "bad host"}), 400),
        (csrf.post("/login", {}), 403),
        (client.get("/users"), 403),
        (client.get("/nowhere"), 404),
        (client.get("/users/7"), 403),
        (client.put("/rps/new"), 405),
    ):
        assert response.status_code == status
        protected(response, page=True)
    broken: Any = SecurityHeaders(lambda request: server_error(request))(RequestFactory().get("/"))
    assert broken.status_code == 500
    protected(broken, page=True)


@pytest.mark.django_db
def test_https_is_kept_once_it_was_used() -> None:
    assert "Strict-Transport-Security" not in Client().get("/login").headers
    with override_settings(HERALD=replace(config(), public_url="https://herald.example.org")):
        assert Client().get("/login").headers["Strict-Transport-Security"].startswith("max-age=31536000")


def test_the_headers_are_outermost_and_sessions_end() -> None:
    from django.conf import settings

    answering = [name for name in settings.MIDDLEWARE if name.startswith(("django.", "portal.middleware."))]
    assert answering[0] == f"portal.middleware.{SecurityHeaders.__name__}"
    assert f"portal.middleware.{SessionLife.__name__}" in answering
    assert settings.SESSION_COOKIE_AGE == config().console_session_s == 12 * 3600
    assert settings.SESSION_COOKIE_HTTPONLY
    assert settings.SESSION_COOKIE_SAMESITE == settings.CSRF_COOKIE_SAMESITE == "Lax"
    assert settings.PASSWORD_HASHERS[0].endswith("Argon2PasswordHasher")


@pytest.mark.processes
def test_answers_of_the_hot_path_cannot_be_taken_for_pages(domain: Domain) -> None:
    with domain.http() as http:
        rp = http.post("/api/v1/rps", json={}).json()["id"]
        for response in (
            http.get(f"/api/v1/rps/{rp}/events"),
            http.post(f"/api/v1/rps/{rp}/events", json={}),
            http.get("/api/v1/rps/" + "a" * 26 + "/events"),
            http.get("/livez"),
            httpx.get(f"{domain.url}/api/v1/rps/{rp}/events", **PLAIN),
        ):
            assert response.headers["x-content-type-options"] == "nosniff"
            assert "default-src 'none'" in response.headers["content-security-policy"]
        with http.stream("GET", f"/api/v1/rps/{rp}/stream") as stream:
            assert stream.headers["x-content-type-options"] == "nosniff"


# -- the Host header ------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_link_is_made_of_our_own_address_whatever_host_the_request_names(logged_in: Callable[..., Client]) -> None:
    client = logged_in("root", admin=True)
    answer = client.post("/users/new", {"name": "ann", "role": "viewer"}, headers={"Host": "evil.example"})
    assert f"{config().base_url}/login/once/" in answer.content.decode()
    assert "evil.example" not in answer.content.decode()


@pytest.mark.django_db
def test_redirects_stay_where_the_browser_is(logged_in: Callable[..., Client]) -> None:
    for client, address in ((Client(), "/"), (logged_in("ann"), "/login")):
        assert client.get(address, headers={"Host": "evil.example"})["Location"].startswith("/")


@pytest.mark.django_db
def test_what_strangers_get_wrong_fills_no_log() -> None:
    said: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = said.append  # type: ignore[method-assign, assignment]
    logging.getLogger().addHandler(handler)
    try:
        assert Client().get("/login", headers={"Host": "not_a_host"}).status_code == 400
        assert Client(enforce_csrf_checks=True).post("/login", {"username": "x"}).status_code == 403
        assert Client().get("/nothing").status_code == 404
    finally:
        logging.getLogger().removeHandler(handler)
    assert [record.getMessage() for record in said] == []


@pytest.mark.django_db
def test_another_sites_form_is_refused_although_any_host_is_served() -> None:
    client = Client(enforce_csrf_checks=True)
    client.get("/login")
    token = client.cookies[next(iter(client.cookies))].value
    typed = {"username": "x", "password": "y", "csrfmiddlewaretoken": token}
    assert client.post("/login", typed, headers={"Origin": "https://evil.example"}).status_code == 403
    assert client.post("/login", typed, headers={"Origin": config().base_url}).status_code == 200


@pytest.mark.django_db
def test_a_session_ends_in_time_however_it_is_used(
    logged_in: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = logged_in("ann")
    assert client.get("/account").status_code == 200
    monkeypatch.setattr("portal.accounts.services.sessions.SESSION_S_MAX", -1)
    assert client.get("/account").status_code == 302
    monkeypatch.undo()
    assert client.get("/account").status_code == 302, "it is gone, not asleep"


@pytest.mark.django_db
def test_a_one_time_link_is_in_no_referrer_and_no_cache() -> None:
    user = User.objects.create_user("ann")
    role_store(user, "viewer")
    response = Client().get(login_link_create(user))
    assert response.headers["Referrer-Policy"] == "same-origin"
    assert "no-store" in response.headers["Cache-Control"]


# -- starts that are refused ------------------------------------------------------------------------------------------------


def settings(folder: Path, **stated: Any) -> Config:
    folder.chmod(0o700)
    return Config(data_dir=str(folder), **{**EXPOSED, "secret_key": GOOD_KEY, **stated})


def test_what_is_exposed() -> None:
    cases: tuple[tuple[dict[str, Any], bool], ...] = (
        ({}, False),
        ({"host": "127.0.0.2"}, False),
        ({"host": "::1"}, False),
        ({"host": "localhost"}, False),
        ({"public_url": "http://127.0.0.1:9"}, False),
        ({"host": "0.0.0.0"}, True),
        ({"host": "::"}, True),
        ({"host": "192.0.2.1"}, True),
        ({"public_url": "http://[broken"}, True),
        ({"public_url": "https://herald.example.org"}, True),
    )
    for stated, exposed in cases:
        assert is_exposed(Config(**stated)) is exposed, stated


def test_sound_settings_are_not_refused(tmp_path: Path) -> None:
    sound = settings(
        tmp_path,
        database_url=f"postgres://herald:{RANDOM}@db.example.org/herald",
        redis_url=f"redis://:{RANDOM}@redis.example.org:6379/0",
    )
    assert weaknesses(sound) == []
    assert refusal(sound) is None
    assert [str(finding.grade) for finding in security_findings(sound)] == ["ok"]


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"secret_key": "a" * 40}, "HERALD_SECRET_KEY can be guessed"),
        ({"secret_key": "please-change-me-to-something-long-and-random"}, "HERALD_SECRET_KEY can be guessed"),
        ({"secret_key": "django-insecure-x7Gk2Lw9Qz4Rt8Vb3Nm6Pd1"}, "HERALD_SECRET_KEY can be guessed"),
        ({"database_url": "postgres://herald:herald@db.example.org/x"}, "The password in HERALD_DATABASE_URL"),
        ({"database_url": "postgres://me:postgres@db.example.org/x"}, "The password in HERALD_DATABASE_URL"),
        ({"redis_url": "redis://:changeme@redis.example.org/0"}, "The password in HERALD_REDIS_URL"),
        ({"dev": True}, "HERALD_DEV shows code and settings"),
        ({"oidc_issuer": "http://login.example.org"}, "HERALD_OIDC_ISSUER is not https"),
    ],
)
def test_a_weak_setting_refuses_the_start_where_others_reach_the_domain(
    tmp_path: Path, stated: dict[str, Any], said: str
) -> None:
    weak = settings(tmp_path, **stated)
    reason = refusal(weak)
    assert reason is not None
    assert reason.startswith(said)
    assert any(str(finding.grade) == "fail" for finding in security_findings(weak))
    own = replace(weak, host="127.0.0.1", public_url="")
    assert refusal(own) is None
    assert all(str(finding.grade) != "fail" for finding in security_findings(own))


@pytest.mark.parametrize(("folder", "file"), [(0o777, 0o600), (0o755, 0o644), (0o711, 0o604)])
def test_a_folder_or_key_that_everybody_can_reach_refuses_it_too(tmp_path: Path, folder: int, file: int) -> None:
    weak = settings(tmp_path, secret_key="")
    key = tmp_path / "secret_key"
    key.write_text(GOOD_KEY)
    key.chmod(file)
    tmp_path.chmod(folder)
    reason = refusal(weak)
    assert reason is not None
    assert "chmod" in reason
    tmp_path.chmod(0o700)
    assert refusal(weak) is None, "a closed folder protects what is in it"


def test_a_client_secret_that_everybody_can_read(tmp_path: Path) -> None:
    secret = tmp_path / "client_secret"
    secret.write_text(RANDOM)
    secret.chmod(0o644)
    weak = settings(
        tmp_path, oidc_issuer="https://id.example.org", oidc_client_id="x", oidc_client_secret_file=str(secret)
    )
    assert str(refusal(weak)).endswith(f"chmod 600 {secret}.")


@pytest.mark.parametrize(
    ("stated", "subject"),
    [
        ({"public_url": "http://herald.example.org"}, "clear text"),
        ({"public_url": ""}, "clear text"),
        ({"redis_url": "redis://redis.example.org/0"}, "store passwords"),
    ],
)
def test_what_may_be_right_in_its_place_is_a_loud_warning(tmp_path: Path, stated: dict[str, Any], subject: str) -> None:
    doubtful = settings(tmp_path, **stated)
    assert refusal(doubtful) is None
    assert [weakness.subject for weakness in warnings(doubtful)] == [subject]
    assert warnings(replace(doubtful, host="127.0.0.1", public_url="")) == []


def test_no_page_shows_a_password_of_the_settings() -> None:
    secret = "the-" + RANDOM
    urls: dict[str, Any] = {
        field.name: f"http://user:{secret}@host:1" for field in fields(Config) if field.metadata["unit"] == "URL"
    }
    texts: dict[str, Any] = dict.fromkeys(("secret_key", "metrics_token", "oidc_client_secret"), secret)
    assert {"redis_url", "database_url", "otlp_url"} <= urls.keys()
    shown = {one.name: one.value for one in settings_in_use(replace(Config(), **urls, **texts), {})}
    public = {"HERALD_PUBLIC_URL", "HERALD_OIDC_ISSUER"}  # names that everybody is told
    assert {name for name, value in shown.items() if secret in value} == public
    assert shown["HERALD_OTLP_URL"] == "http://user:********@host:1"


def test_the_gravest_comes_first(tmp_path: Path) -> None:
    found = weaknesses(settings(tmp_path, public_url="http://herald.example.org", secret_key="a" * 40))
    assert [type(weakness) for weakness in found] == [Weakness, Weakness]
    assert [weakness.grave for weakness in found] == [True, False]


@pytest.mark.processes
def test_a_refused_start_is_one_sentence_and_doctor_says_the_same(tmp_path: Path) -> None:
    domain = Domain(tmp_path / "var", host="0.0.0.0", secret_key="a" * 40)
    result = manage("run", env=domain.env)
    said = (result.stdout + result.stderr).strip().splitlines()
    assert result.returncode == 1
    assert said[-1].startswith("Herald did not start. HERALD_SECRET_KEY can be guessed")
    assert not (tmp_path / "var" / "herald.sqlite3").exists(), "nothing was begun"
    doctor = manage("doctor", env=domain.env)
    assert doctor.returncode == 1
    assert "HERALD_SECRET_KEY can be guessed" in doctor.stdout
    assert "a" * 40 not in doctor.stdout + result.stdout + result.stderr


@pytest.mark.skipif(os.name != "posix", reason="modes")
@pytest.mark.processes
def test_the_data_folder_that_a_start_makes_is_closed(domain: Domain) -> None:
    assert domain.data_dir.stat().st_mode & 0o077 == 0
    for name in ("secret_key", "herald.sqlite3"):
        assert (domain.data_dir / name).stat().st_mode & 0o077 == 0, name


# -- the document -----------------------------------------------------------------------------------------------------------


def test_every_test_that_the_document_names_exists() -> None:
    root = Path(__file__).resolve().parents[2]
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", (root / "docs" / "security.md").read_text())
    assert len(named) >= 40
    missing = [f"{path}::{name}" for path, name in named if f"def {name}(" not in (root / path).read_text()]
    assert missing == []
