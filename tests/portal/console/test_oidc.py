"""Logging in at an identity provider: the whole flow over HTTP, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from joserfc.jwk import RSAKey

from demo.harness.servers import Domain
from tests.gateway.server import PLAIN
from tests.portal.console.identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider
from tests.portal.console.people import Person, text_of

pytestmark = pytest.mark.processes
VIEWER = {"groups": ["everybody", "watchers"]}


@pytest.fixture
def provider(console_domain: tuple[IdentityProvider, Domain]) -> IdentityProvider:
    console_domain[0].reset()
    return console_domain[0]


@pytest.fixture
def domain(console_domain: tuple[IdentityProvider, Domain]) -> Domain:
    return console_domain[1]


def come_back(provider: IdentityProvider, person: Person, **headers: str) -> str:
    """Begin at the console and log in at the provider. Returns the address that the provider sends the browser back to."""
    begun = person.http.get("/login/oidc", headers=headers)
    assert begun.status_code == 302, text_of(begun)
    assert begun.headers["Location"].startswith(provider.issuer + "/authorize?")
    return str(httpx.get(begun.headers["Location"], **PLAIN).headers["Location"])


def log_in(provider: IdentityProvider, domain: Domain, **claims: Any) -> tuple[Person, httpx.Response]:
    provider.person = {"sub": "ann", **claims}
    person = Person(domain)
    return person, person.get(come_back(provider, person))


def name_of(person: Person) -> str:
    """The user's name as their account page says."""
    return text_of(person.get("/account")).split("Role")[0].split()[-1]


def refused(answer: httpx.Response, status: int, said: str, person: Person) -> None:
    assert (answer.status_code, said in text_of(answer)) == (status, True), text_of(answer)
    assert not person.is_in


def test_the_button_is_there_and_leads_to_the_provider(domain: Domain) -> None:
    assert 'href="/login/oidc"' in Person(domain).get("/login").text


def test_the_whole_flow_logs_in_with_the_mapped_role(provider: IdentityProvider, domain: Domain) -> None:
    person, answer = log_in(provider, domain, **VIEWER, name="Ann Example", email="ann@example.org")
    assert answer.status_code == 200
    assert person.is_in
    assert "viewer" in text_of(person.get("/account"))
    assert name_of(person).startswith("oidc-")
    assert person.get("/users").status_code == 403
    asked = provider.asked[-1]
    assert asked["scope"].split()[0] == "openid"
    assert len(asked["nonce"]) >= 32
    assert len(asked["state"]) >= 32


def test_a_role_is_taken_from_the_userinfo_when_the_token_has_none(provider: IdentityProvider, domain: Domain) -> None:
    provider.userinfo = {"sub": "uma", "groups": ["herald-ops"]}
    person, _ = log_in(provider, domain, sub="uma")
    assert "operator" in text_of(person.get("/account"))
    provider.userinfo = {"sub": "somebody-else", "groups": ["herald-admins"]}
    person, answer = log_in(provider, domain, sub="uma")
    refused(answer, 401, "another subject", person)


@pytest.mark.parametrize("claims", [{}, {"groups": ["everybody"]}, {"groups": "administrator"}, {"groups": {"a": 1}}])
def test_without_a_mapped_role_nobody_gets_in(
    provider: IdentityProvider, domain: Domain, claims: dict[str, Any]
) -> None:
    person, answer = log_in(provider, domain, sub="nobody", **claims)
    refused(answer, 403, "has no role here", person)


def test_a_role_lost_at_the_provider_is_lost_here_with_the_sessions(provider: IdentityProvider, domain: Domain) -> None:
    earlier, _ = log_in(provider, domain, sub="leaver", groups=["herald-admins"])
    assert earlier.get("/users").status_code == 200
    later, answer = log_in(provider, domain, sub="leaver", groups=[])
    refused(answer, 403, "has no role here", later)
    assert not earlier.is_in


def test_the_same_address_of_mail_with_another_subject_is_another_user(
    provider: IdentityProvider, domain: Domain
) -> None:
    first, _ = log_in(provider, domain, sub="one", email="boss@example.org", email_verified=True, **VIEWER)
    second, _ = log_in(provider, domain, sub="two", email="boss@example.org", email_verified=True, **VIEWER)
    again, _ = log_in(provider, domain, sub="one", email="other@example.org", **VIEWER)
    assert name_of(first) != name_of(second)
    assert name_of(first) == name_of(again)


def test_a_preferred_name_takes_no_local_users_place(provider: IdentityProvider, domain: Domain) -> None:
    person, _ = log_in(provider, domain, sub="mallory", preferred_username="admin", name="admin", **VIEWER)
    assert name_of(person).startswith("oidc-")
    assert person.get("/users").status_code == 403


def test_a_wrong_nonce(provider: IdentityProvider, domain: Domain) -> None:
    provider.next_claims = {"nonce": "of-another-login"}
    person, answer = log_in(provider, domain, **VIEWER)
    refused(answer, 401, "not valid", person)


def test_no_nonce(provider: IdentityProvider, domain: Domain) -> None:
    provider.next_claims = {"nonce": None}
    person, answer = log_in(provider, domain, **VIEWER)
    refused(answer, 401, "not valid", person)


def test_a_wrong_state(provider: IdentityProvider, domain: Domain) -> None:
    provider.person = {"sub": "ann", **VIEWER}
    person = Person(domain)
    back = come_back(provider, person)
    state = parse_qs(urlsplit(back).query)["state"][0]
    refused(person.get(back.replace(state, "x" * 32)), 401, "not begun in this browser", person)


def test_a_login_begun_in_another_browser(provider: IdentityProvider, domain: Domain) -> None:
    """Login CSRF: a victim is sent to the attacker's way back."""
    provider.person = {"sub": "ann", **VIEWER}
    back = come_back(provider, Person(domain))
    victim = Person(domain)
    refused(victim.get(back), 401, "not begun in this browser", victim)


def test_a_replayed_code(provider: IdentityProvider, domain: Domain) -> None:
    provider.person = {"sub": "ann", **VIEWER}
    person = Person(domain)
    back = come_back(provider, person)
    assert person.get(back).status_code == 200
    again = person.get(back)
    assert again.status_code == 401, "the state is spent"
    thief = Person(domain)
    own = come_back(provider, thief)
    code, own_code = (parse_qs(urlsplit(url).query)["code"][0] for url in (back, own))
    refused(thief.get(own.replace(own_code, code)), 503, "identity provider answers 400", thief)


def test_a_stolen_code_is_worth_nothing_without_its_verifier(provider: IdentityProvider, domain: Domain) -> None:
    """PKCE: the thief has an unspent code, and a login of their own to use it in."""
    provider.person = {"sub": "ann", **VIEWER}
    stolen = parse_qs(urlsplit(come_back(provider, Person(domain))).query)["code"][0]
    thief = Person(domain)
    own = come_back(provider, thief)
    own_code = parse_qs(urlsplit(own).query)["code"][0]
    refused(thief.get(own.replace(own_code, stolen)), 503, "identity provider answers 400", thief)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"aud": "another-client"}, "meant for another client"),
        ({"aud": [CLIENT_ID, "another-client"], "azp": "another-client"}, "given to another client"),
        ({"aud": [CLIENT_ID, "another-client"]}, "given to another client"),
        ({"iss": "https://elsewhere.example"}, "of another issuer"),
        ({"exp": 1}, "expired"),
        ({"exp": None}, "expired"),
        ({"iat": 99_999_999_999}, "in the future"),
        ({"sub": None}, "no subject"),
        ({"sub": "x" * 256}, "no subject"),
    ],
)
def test_an_id_token_that_is_not_for_us_or_not_now(
    provider: IdentityProvider, domain: Domain, wrong: dict[str, Any], said: str
) -> None:
    provider.next_claims = wrong
    person, answer = log_in(provider, domain, **VIEWER)
    refused(answer, 401, said, person)


def test_an_unsigned_id_token(provider: IdentityProvider, domain: Domain) -> None:
    provider.next_algorithm = "none"
    person, answer = log_in(provider, domain, **VIEWER)
    refused(answer, 401, "not signed with RS256", person)


def test_an_id_token_signed_with_the_public_key_as_a_secret(provider: IdentityProvider, domain: Domain) -> None:
    provider.next_algorithm = "HS256"
    person, answer = log_in(provider, domain, **VIEWER)
    refused(answer, 401, "not signed with RS256", person)


def test_an_id_token_signed_by_somebody_else(provider: IdentityProvider, domain: Domain) -> None:
    provider.next_key = RSAKey.generate_key(2048, {"kid": "one"})
    person, answer = log_in(provider, domain, **VIEWER)
    refused(answer, 401, "not valid", person)


@pytest.mark.parametrize("token", ["", "a.b.c", "x" * 20_000, "e30.e30."])
def test_what_is_no_token_at_all(provider: IdentityProvider, domain: Domain, token: str) -> None:
    provider.next_token = token or "."
    person, answer = log_in(provider, domain, **VIEWER)
    assert answer.status_code == 401, text_of(answer)
    assert not person.is_in


def test_the_way_back_is_our_own_address_whatever_host_the_request_names(
    provider: IdentityProvider, domain: Domain
) -> None:
    back = come_back(provider, Person(domain), Host="evil.example")
    assert back.startswith(f"{domain.url}/login/oidc/callback?")


def test_after_logging_in_nobody_is_sent_to_another_site(provider: IdentityProvider, domain: Domain) -> None:
    provider.person = {"sub": "ann", **VIEWER}
    for wanted, expected in (("https://evil.example/", "/"), ("//evil.example/", "/"), ("/account", "/account")):
        person = Person(domain)
        begun = person.http.get("/login/oidc", params={"next": wanted})
        back = httpx.get(begun.headers["Location"], **PLAIN).headers["Location"]
        assert person.get(back, follow=False).headers["Location"] == expected


def test_an_error_of_the_provider_is_not_repeated_and_logs_nobody_out(
    provider: IdentityProvider, domain: Domain
) -> None:
    person, _ = log_in(provider, domain, **VIEWER)
    answer = person.get("/login/oidc/callback?error=<b>evil</b>&state=x")
    assert answer.status_code == 401
    assert "evil" not in answer.text
    assert person.is_in


def test_the_console_calls_the_user_by_the_providers_name_and_changes_no_role_of_theirs(
    provider: IdentityProvider, domain: Domain
) -> None:
    boss, _ = log_in(provider, domain, sub="boss", groups=["herald-admins"], name="The Boss")
    log_in(provider, domain, sub="clerk", name="The Clerk", **VIEWER)
    page = boss.get("/users").text
    assert "The Clerk" in page
    row = page[page.index("The Clerk") - 60 : page.index("The Clerk")]
    address = "/users/" + row.split('href="/users/')[1].split('"')[0]
    assert "The identity provider assigns the role at each login" in text_of(boss.get(address))
    answer = boss.submit(f"{address}/role", {"role": "administrator"}, page=address)
    assert "change it there" in text_of(answer)


def test_the_secret_and_the_tokens_are_in_no_log(provider: IdentityProvider, domain: Domain) -> None:
    person, _ = log_in(provider, domain, **VIEWER)
    assert person.is_in
    logs = "".join(path.read_text(errors="replace") for path in Path(domain.data_dir / "logs").glob("*.log"))
    assert CLIENT_SECRET not in logs
    assert "eyJ" not in logs
    assert json.dumps(CLIENT_SECRET) not in domain.output
