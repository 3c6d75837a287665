"""Logins of programs (RFC 8628): a token for who holds the device code, once, after a person has approved the user code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from demo.harness.servers import Domain
from eventing.access.services.tokens import IssuedToken
from eventing.audit.models import AuditEntry
from eventing.core.errors import InvalidRequest, NotFound, Unavailable
from portal.accounts.models import DeviceLogin
from portal.accounts.services import device_logins
from portal.accounts.services.device_logins import (
    DEVICE_S,
    INTERVAL_S,
    LEASES_S,
    DeviceCodes,
    PollAnswer,
    device_login_begin,
    device_login_decide,
    device_login_open,
    device_login_poll,
)
from portal.accounts.services.roles import role_store
from portal.accounts.services.throttling import DEVICE
from tests.portal.console.identity_provider import IdentityProvider
from tests.portal.console.people import Person

IN_DATABASE = pytest.mark.django_db
LEASE_S = LEASES_S[0]


def begun(client: str = "herald of ann", address: str = "192.0.2.1") -> DeviceCodes:
    return device_login_begin(client=client, address=address)


def approved(codes: DeviceCodes, user: User, *, with_role: bool = True) -> IssuedToken:
    device_login_decide(user=user, code=codes.user_code, approve=True, lease_s=LEASE_S, with_role=with_role)
    found = device_login_poll(codes.device_code)
    assert isinstance(found, IssuedToken), found
    return found


# -- services ----------------------------------------------------------------------------------------------------------


@IN_DATABASE
def test_a_token_is_given_once_after_the_approval_to_who_holds_the_device_code() -> None:
    user, codes = User.objects.create_user("ann"), begun()
    assert device_login_poll(codes.device_code) is PollAnswer.PENDING
    assert device_login_poll("guessed") is PollAnswer.EXPIRED
    assert device_login_poll(codes.user_code) is PollAnswer.EXPIRED, "the user code alone is worth nothing"
    issued = approved(codes, user)
    assert (issued.subject, issued.admin, issued.scopes, issued.granted_s) == ("ann", False, None, LEASE_S)
    assert device_login_poll(codes.device_code) is PollAnswer.EXPIRED
    assert codes.device_code not in str(list(DeviceLogin.objects.values())), "only its hash is stored"
    actions = list(AuditEntry.objects.exclude(action="key.create").order_by("id").values_list("action", flat=True))
    assert actions == ["login.device", "token.create"]


@IN_DATABASE
@pytest.mark.parametrize(
    ("role", "with_role", "admin", "narrowed"),
    [
        ("administrator", True, True, False), ("administrator", False, False, False), ("operator", True, True, True),
        ("viewer", True, True, True), ("viewer", False, False, False), ("", True, False, False),
    ],
)  # fmt: skip
def test_a_token_has_the_rights_of_the_role_or_those_of_policies(
    role: str, with_role: bool, admin: bool, narrowed: bool
) -> None:
    user = User.objects.create_user("ann")
    role_store(user, role)
    issued = approved(begun(), user, with_role=with_role)
    assert (issued.admin, issued.scopes is not None) == (admin, narrowed)
    if role == "viewer" and narrowed:
        assert issued.scopes is not None
        assert {operation for scope in issued.scopes for operation in scope.operations} == {
            "describe",
            "subscribe",
            "history",
        }


@IN_DATABASE
def test_a_refused_login_and_one_of_a_deactivated_user_give_no_token() -> None:
    user = User.objects.create_user("ann")
    refused, other = begun(), begun()
    device_login_decide(user=user, code=refused.user_code, approve=False, lease_s=LEASE_S, with_role=False)
    assert device_login_poll(refused.device_code) is PollAnswer.DENIED
    device_login_decide(user=user, code=other.user_code, approve=True, lease_s=LEASE_S, with_role=False)
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert device_login_poll(other.device_code) is PollAnswer.DENIED


@IN_DATABASE
def test_a_login_is_decided_once_and_within_its_time() -> None:
    user, codes, now = User.objects.create_user("ann"), begun(), timezone.now()
    late = now + timedelta(seconds=DEVICE_S + 1)
    with pytest.raises(NotFound):
        device_login_decide(user=user, code=codes.user_code, approve=True, lease_s=LEASE_S, with_role=False, now=late)
    assert device_login_poll(codes.device_code, now=late) is PollAnswer.EXPIRED
    with pytest.raises(InvalidRequest):
        device_login_decide(user=user, code=codes.user_code, approve=True, lease_s=10**9, with_role=False)
    device_login_decide(user=user, code=codes.user_code, approve=False, lease_s=LEASE_S, with_role=False)
    with pytest.raises(NotFound):
        device_login_decide(user=user, code=codes.user_code, approve=True, lease_s=LEASE_S, with_role=False)


@IN_DATABASE
def test_a_program_that_polls_too_often_is_slowed_down() -> None:
    codes, now = begun(), timezone.now()
    assert device_login_poll(codes.device_code, now=now) is PollAnswer.PENDING
    assert device_login_poll(codes.device_code, now=now + timedelta(seconds=INTERVAL_S / 2)) is PollAnswer.SLOW_DOWN
    assert device_login_poll(codes.device_code, now=now + timedelta(seconds=2 * INTERVAL_S)) is PollAnswer.PENDING


@IN_DATABASE
def test_open_logins_are_bounded_and_expired_ones_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_logins, "DEVICES_MAX", 3)
    for _ in range(3):
        begun()
    with pytest.raises(Unavailable):
        begun()
    DeviceLogin.objects.update(expires_at=timezone.now())
    begun()
    assert DeviceLogin.objects.count() == 1


@IN_DATABASE
def test_a_code_is_found_however_it_is_typed_and_what_a_program_says_of_itself_is_bounded() -> None:
    codes = begun(client="x\n\x1b[2J" + "y" * 1000)
    code = codes.user_code
    for typed in (code, code.lower(), f"{code[:4]}-{code[4:]}", f" {code[:4]} {code[4:]} "):
        assert device_login_open(typed) is not None
    for typed in ("", code[:7], code + "B", "0" * 8, "B" * 10_000):
        assert device_login_open(typed) is None
    stated = DeviceLogin.objects.get().client
    assert len(stated) == 100
    assert stated.isprintable()


# -- pages -------------------------------------------------------------------------------------------------------------


@IN_DATABASE
def test_the_page_asks_who_is_logged_in_and_shows_what_asks(logged_in: Callable[..., Client]) -> None:
    codes = begun(client="<b>herald</b>")
    path = f"/login/device?code={codes.user_code}"
    assert Client().get(path).headers["Location"].startswith("/login?next=/login/device%3Fcode%3D")
    page = logged_in(csrf=True).get(path)
    assert page.status_code == 200
    text = page.content.decode()
    assert "&lt;b&gt;herald&lt;/b&gt;" in text
    assert "192.0.2.1" in text
    assert logged_in(csrf=True).post("/login/device", {"code": codes.user_code, "answer": "approve"}).status_code == 403
    assert device_login_poll(codes.device_code) is PollAnswer.PENDING, "seeing the page approves nothing"


@IN_DATABASE
def test_codes_of_one_address_are_bounded_and_so_are_guesses(logged_in: Callable[..., Client]) -> None:
    for _ in range(DEVICE.free):
        assert Client().post("/login/device/codes", {"client": "x"}).status_code == 200
    refused = Client().post("/login/device/codes", {"client": "x"})
    assert (refused.status_code, int(refused.headers["Retry-After"]) > 0) == (429, True)
    assert logged_in().get("/login/device?code=BBBBBBBB").status_code == 429


@IN_DATABASE
def test_what_a_program_is_answered_is_that_of_the_rfc(logged_in: Callable[..., Client]) -> None:
    answer = Client().post("/login/device/codes", {"client": "herald"})
    codes = answer.json()
    assert answer.headers["Cache-Control"].startswith("max-age=0, no-cache, no-store")
    assert re.fullmatch(r"[B-Z]{4}-[B-Z]{4}", codes["user_code"])
    assert codes["verification_uri_complete"] == f"{codes['verification_uri']}?code={codes['user_code']}"
    poll = Client().post("/login/device/token", {"device_code": codes["device_code"]})
    assert (poll.status_code, poll.json()["error"]) == (400, "authorization_pending")
    form = {"code": codes["user_code"], "answer": "approve", "lease_s": str(LEASE_S), "rights": "role"}
    assert "gets its token" in logged_in().post("/login/device", form).content.decode()
    given = Client().post("/login/device/token", {"device_code": codes["device_code"]}).json()
    assert (given["token_type"], given["expires_in"], given["subject"]) == ("Bearer", LEASE_S, "ann")
    assert Client().post("/login/device/token", {}).json()["error"] == "expired_token"
    assert logged_in().post("/login/device", form).status_code == 404, "decided already"


# -- the whole way -----------------------------------------------------------------------------------------------------


@pytest.mark.processes
def test_herald_login_is_approved_in_the_console_and_its_token_is_used_from_then_on(
    console_domain: tuple[IdentityProvider, Domain], admin: Person, tmp_path: Path
) -> None:
    domain = console_domain[1]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HERALD_")}
    env = {**clean, "XDG_CONFIG_HOME": str(tmp_path)}
    herald = [sys.executable, "-c", "from herald.commands import main; main()"]
    with subprocess.Popen(
        [*herald, "login", domain.url, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    ) as process:
        assert process.stderr is not None
        link = process.stderr.readline().split()[1]
        code = re.search(r"the code (\S+) within", process.stderr.readline())
        assert code is not None
        path = link.removeprefix(domain.url)
        assert code[1] in admin.get(path).text
        fields = {"code": code[1], "answer": "approve", "lease_s": str(LEASE_S), "rights": "role"}
        assert "gets its token" in admin.submit("/login/device", fields, page=path).text
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    document = json.loads(said)
    assert (document["profile"], document["admin"]) == (document["domain"], True)
    assert "token" not in said.replace('"token"', ""), "the token is in the profile only"
    listed = subprocess.run(
        [*herald, "lease", "list"], capture_output=True, text=True, env=env, timeout=60, check=False
    )
    assert listed.returncode == 0, listed.stderr
