"""Who sees the Federation page, and which acts it offers to whom; what they may do is the REST interface's to decide."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from portal.accounts.services.users import user_role_change
from tests.peering.other_domain import OtherDomain
from tests.replication.shared_rp import peer_made

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]

MakeClient = Callable[..., Client]


def of_role(logged_in: MakeClient, role: str) -> Client:
    client = logged_in(f"a-{role or 'nobody'}")
    user_role_change(user_id=User.objects.get(username=f"a-{role or 'nobody'}").pk, role=role, by=None)
    return client


@pytest.mark.parametrize(
    ("role", "administrates", "operates"),
    [("administrator", "true", "true"), ("operator", "false", "true"), ("viewer", "false", "false")],
)
def test_the_page_offers_what_the_role_may_do(
    logged_in: MakeClient, role: str, administrates: str, operates: str
) -> None:
    answer = of_role(logged_in, role).get("/federation")
    assert answer.status_code == 200
    page = answer.content.decode()
    assert f'data-administrate="{administrates}" data-operate="{operates}"' in page
    assert ('id="add"' in page) is (role == "administrator")


def test_who_does_not_oversee_the_domain_does_not_see_its_peers(logged_in: MakeClient) -> None:
    assert of_role(logged_in, "").get("/federation").status_code == 403


def test_a_peer_has_an_address_and_what_is_none_has_not(logged_in: MakeClient) -> None:
    peer_made(OtherDomain("b.test"))
    client = of_role(logged_in, "viewer")
    answer = client.get("/federation/b.test")
    assert answer.status_code == 200
    assert "<title>b.test" in answer.content.decode()
    assert client.get("/federation/c.test").status_code == 404
