"""The lists that operators look through, who may pause and trim, and what is reported of keys and revocations."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import jsonschema
import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from admin_rp.catalogue import CATALOGUE
from eventing.access.services.keys import ensure_domain_key, key_retire, key_rotate
from eventing.access.services.revocations import revocation_create, revocation_lift
from eventing.audit.models import AuditEntry
from eventing.core.errors import Forbidden, InvalidRequest
from eventing.core.events.cursors import Cursor
from eventing.core.ids import DOMAIN_ADMIN, admin_id
from eventing.core.principals import Principal
from eventing.core.roles import OPERATOR, VIEWER, scopes_of
from eventing.log import control, federated
from eventing.operations.rules.session_listing import SORTS, Row, SessionListing, key_valid, merged, row_key
from eventing.peering.models import Peer
from eventing.replication.services.sealing import low_water_mark_own, seal_own
from eventing.rps.models import RendezvousPoint
from eventing.rps.selectors.rendezvous_point_lists import names_below
from eventing.rps.services.pausing import rendezvous_point_pause, rendezvous_point_resume
from eventing.rps.services.trimming import ALL, history_trim
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.selectors import subscription_lists
from eventing.subscriptions.selectors.subscription_lists import subscriptions_listed
from eventing.subscriptions.services.subscriptions import subscription_create, subscription_renew
from tests.planes import events_at, events_made, principal, problem_code, types_at

pytestmark = pytest.mark.usefixtures("stores")

NewRp = Callable[..., RendezvousPoint]
ClientOf = Callable[..., APIClient]


def of_role(role: str) -> Principal:
    made = principal(role, admin=True)
    return Principal(made.issuer, made.subject, True, made.expires_at, made.claims, scopes_of(role))


@pytest.fixture
def watching(client_of: ClientOf) -> APIClient:
    """A viewer's client."""
    return client_of("vera", admin=True, operations=["describe", "subscribe", "history"])


def all_pages(client: APIClient, path: str, **asked: Any) -> list[dict[str, Any]]:
    """The items of all pages."""
    items, cursor = [], None
    for _ in range(50):
        answer = client.get(path, {**asked, **({"cursor": cursor} if cursor else {})})
        assert answer.status_code == 200, answer.content
        page = answer.json()
        items += page["items"]
        cursor = page["next"]
        if cursor is None:
            return items
    raise AssertionError("pages without an end")


def are_of_the_catalogue(rp: str) -> None:
    """What has been reported there has the form that the catalogue says."""
    for one in events_at(rp):
        jsonschema.Draft202012Validator(CATALOGUE[one["type"]].schema).validate(one["data"])


# Pausing and trimming: who may


def test_who_administers_pauses_and_others_do_not(new_rp: NewRp, ben: Principal) -> None:
    rp = new_rp().id
    for stranger in (ben, of_role(VIEWER)):
        with pytest.raises(Forbidden):
            rendezvous_point_pause(reference=rp, principal=stranger)
        with pytest.raises(Forbidden):
            history_trim(reference=rp, principal=stranger, before=ALL)
    with pytest.raises(Forbidden):
        rendezvous_point_pause(reference=admin_id(rp), principal=principal("root", admin=True))
    with pytest.raises(InvalidRequest):
        rendezvous_point_pause(reference=rp, principal=of_role(OPERATOR), reason="x" * 256)
    for allowed in (of_role(OPERATOR), principal("ann")):
        assert rendezvous_point_pause(reference=rp, principal=allowed, reason="r").paused_at is not None
        assert rendezvous_point_resume(reference=rp, principal=allowed).paused_at is None


def test_a_pause_repeated_changes_nothing_and_keeps_its_time(new_rp: NewRp, ann: Principal) -> None:
    rp = new_rp().id
    first = rendezvous_point_pause(reference=rp, principal=ann, reason="a")
    rendezvous_point_pause(reference=rp, principal=ann, reason="a")
    again = rendezvous_point_pause(reference=rp, principal=ann, reason="b")
    assert (again.paused_at, again.paused_reason) == (first.paused_at, "b")
    assert again.version == 1, "it is no part of what the home signs"
    rendezvous_point_resume(reference=rp, principal=ann)
    rendezvous_point_resume(reference=rp, principal=ann)
    assert types_at(admin_id(rp))[-3:] == ["rp.paused", "rp.paused", "rp.resumed"]
    are_of_the_catalogue(admin_id(rp))
    are_of_the_catalogue(DOMAIN_ADMIN)


def test_a_replica_is_paused_here_whatever_its_home_says(new_rp: NewRp) -> None:
    row = new_rp()
    RendezvousPoint.objects.filter(id=row.id).update(home="b.test", policy=[])
    with pytest.raises(Forbidden):
        rendezvous_point_pause(reference=row.id, principal=principal("ann"))
    assert rendezvous_point_pause(reference=row.id, principal=of_role(OPERATOR)).paused_at is not None


def test_what_left_the_domain_is_sealed_before_it_is_trimmed(new_rp: NewRp, ann: Principal) -> None:
    rp = new_rp().id
    bounds = RendezvousPoint.objects.get().bounds
    control.append(rp, events_made(3), bounds)
    seal_own(rp)  # somebody asked for a proof, or a peer has it
    control.append(rp, events_made(4, begin=3), bounds)
    assert history_trim(reference=rp, principal=ann, before=ALL).removed == 7
    head = federated.heads([rp])[0]
    assert head is not None
    assert (head.sealed, head.own, head.first) == (7, 7, 8)
    are_of_the_catalogue(admin_id(rp))
    assert low_water_mark_own(rp) is not None, "who asks is told, signed, that all before is gone"
    control.append(rp, events_made(1, begin=7), bounds)
    assert seal_own(rp) == 8, "the chain goes on behind it"


def test_what_never_left_is_trimmed_unsealed_and_the_next_seal_leaves_it_out(new_rp: NewRp, ann: Principal) -> None:
    rp = new_rp().id
    bounds = RendezvousPoint.objects.get().bounds
    control.append(rp, events_made(5), bounds)
    epoch = control.log_state(rp)
    assert epoch is not None
    assert history_trim(reference=rp, principal=ann, before=f"{epoch.epoch}:3").removed == 3
    head = federated.heads([rp])[0]
    assert head is not None
    assert (head.sealed, head.first) == (0, 4)
    assert seal_own(rp) == 5


class Killed(BaseException):
    """The process dies."""


def test_a_trim_is_in_the_audit_before_anything_goes(
    new_rp: NewRp, ann: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    rp = new_rp().id
    control.append(rp, events_made(3), RendezvousPoint.objects.get().bounds)
    really = control.trim_log_before

    def trim_and_die(*stated: Any) -> Any:
        really(*stated)
        raise Killed

    monkeypatch.setattr(control, "trim_log_before", trim_and_die)
    with pytest.raises(Killed):
        history_trim(reference=rp, principal=ann, before=ALL, reason="r")
    log = control.log_state(rp)
    assert log is not None
    assert log.first == log.next == 4
    entry = AuditEntry.objects.get(action="rp.trim")
    assert entry.details == {"removed": 3, "first": 4, "epoch": log.epoch, "reason": "r"}
    monkeypatch.undo()
    assert history_trim(reference=rp, principal=ann, before=ALL).removed == 0
    assert AuditEntry.objects.filter(action="rp.trim").count() == 1, "what removes nothing is no act"


# Keys, revocations, leases


def test_changes_of_keys_and_revocations_are_reported_on_the_domain(root: Principal) -> None:
    first = ensure_domain_key()
    made = key_rotate(principal=root)
    key_retire(principal=root, kid=first, reason="a backup was lost")
    revoked = revocation_create(principal=root, kind="subject", value="ann", reason="laptop lost").row
    revocation_lift(principal=root, revocation_id=str(revoked.pk))
    told = [(one["type"].removeprefix("io.herald."), one["data"]) for one in events_at(DOMAIN_ADMIN)]
    assert [kind for kind, _ in told] == [
        "key.rotated",
        "revocation.made",
        "key.retired",
        "revocation.made",
        "revocation.lifted",
    ]
    assert (told[0][1]["key"]["kid"], told[0][1]["by"]) == (made.kid, "root")
    assert (told[1][1]["revocation"]["kind"], told[1][1]["revocation"]["value"]) == ("key", first)
    assert (told[2][1]["key"]["kid"], told[2][1]["reason"]) == (first, "a backup was lost")
    assert told[3][1]["revocation"]["reason"] == "laptop lost"
    assert told[4][1]["revocation"]["value"] == "ann"
    are_of_the_catalogue(DOMAIN_ADMIN)
    assert all("private" not in str(data) and '"d"' not in str(data) for _, data in told)


def test_an_operator_renews_the_subscription_of_another(new_rp: NewRp, ben: Principal) -> None:
    made = subscription_create(reference=new_rp().id, principal=ben, lease_s=60)
    granted = subscription_renew(subscription_id=made.id, principal=of_role(OPERATOR), lease_s=600)
    assert granted.granted_s == 600
    with pytest.raises(Forbidden):
        subscription_renew(subscription_id=made.id, principal=of_role(VIEWER), lease_s=600)


def test_leases_of_all_kinds_come_soonest_first(
    new_rp: NewRp, ben: Principal, watching: APIClient, api: APIClient
) -> None:
    now = timezone.now()
    rps = [new_rp(name=f"r{number}").id for number in range(4)]
    subscriptions = [subscription_create(reference=rps[0], principal=ben).id for _ in range(3)]
    Peer.objects.create(
        name="b.test", url="https://b.test", state="active", granted_s=1, warn_at=now, expires_at=now + timedelta(hours=2),
        created_at=now, changed_at=now,
    )  # fmt: skip
    at_once = now + timedelta(hours=3)  # several kinds end at one instant
    RendezvousPoint.objects.filter(id__in=rps[:3]).update(expires_at=at_once, warn_at=at_once)
    RendezvousPoint.objects.filter(id=rps[2]).update(home="c.test")
    Subscription.objects.filter(id__in=subscriptions[:2]).update(expires_at=at_once, warn_at=at_once, warned_at=now)
    RendezvousPoint.objects.filter(id=rps[3]).update(expires_at=now + timedelta(hours=1), warn_at=now)
    Subscription.objects.filter(id=subscriptions[2]).update(
        expires_at=now - timedelta(seconds=1), warn_at=now - timedelta(seconds=1)
    )

    found = all_pages(watching, "/api/v1/leases", limit=2)
    assert [(one["kind"], one["id"]) for one in found] == [
        ("rp", rps[3]),
        ("peer", "b.test"),
        ("replica", rps[2]),
        *[("rp", rp) for rp in sorted(rps[:2])],
        *[("subscription", one) for one in sorted(subscriptions[:2])],
    ]
    assert found == all_pages(watching, "/api/v1/leases")
    assert (found[2]["owner"], found[2]["name"]) == ("c.test", "/localhost/r2/")
    assert (found[-1]["owner"], found[-1]["rp"], found[-1]["warned"]) == ("ben", rps[0], True)
    of_kind = all_pages(watching, "/api/v1/leases", kind="subscription", limit=1)
    assert [one["id"] for one in of_kind] == sorted(subscriptions[:2])
    before = (now + timedelta(hours=2, seconds=1)).isoformat()
    assert [one["kind"] for one in all_pages(watching, "/api/v1/leases", ends_before=before)] == ["rp", "peer"]
    assert problem_code(api.get("/api/v1/leases")) == "forbidden"
    for wrong in (
        {"kind": "cake"},
        {"ends_before": "soon"},
        {"ends_before": "2026-13-45T00:00:00Z"},
        {"ends_before": "0001-01-01T00:00:00+23:00"},  # none that a database can say
        {"ends_before": "9999-12-31T23:59:59-23:00"},
    ):
        assert problem_code(watching.get("/api/v1/leases", wrong)) == "invalid-request"
    assert problem_code(watching.get("/api/v1/leases", {"cursor": "bGVhc2VzIDEgMg"})) == "invalid-cursor"


# Subscriptions of the domain


def test_subscriptions_are_listed_with_their_lag_furthest_behind_first(
    new_rp: NewRp, ben: Principal, ann: Principal, watching: APIClient, client_of: ClientOf
) -> None:
    rps = [new_rp().id for _ in range(2)]
    of = {
        "none": subscription_create(reference=rps[0], principal=ben).id,
        "all": subscription_create(reference=rps[0], principal=ann, start="earliest").id,
        "other": subscription_create(reference=rps[1], principal=ben).id,
        "lost": subscription_create(reference=rps[1], principal=ann, start="aaaaaaaa:70").id,
    }
    bounds = RendezvousPoint.objects.get(id=rps[0]).bounds
    control.append(rps[0], events_made(5), bounds)
    control.append(rps[1], events_made(2), bounds)
    log = control.log_state(rps[0])
    assert log is not None
    for name, offset in (("none", 5), ("all", 1)):
        control.subscription_cursor_set(rps[0], of[name], log_cursor(log.epoch, offset))

    found = all_pages(watching, "/api/v1/subscriptions", sort="lag", limit=1)
    names = {one: name for name, one in of.items()}
    shown = [(names[one["id"]], one["lag"]) for one in found]
    assert shown[0] == ("all", 4)
    assert shown[-1] == ("none", 0)
    assert dict(shown) == {"all": 4, "other": 2, "lost": 2, "none": 0}, "an unknown epoch is all there is behind"
    for sort in ("id", "ends"):
        every = all_pages(watching, "/api/v1/subscriptions", sort=sort, limit=3)
        assert {one["id"]: one["lag"] for one in every} == {one["id"]: one["lag"] for one in found}
    at = all_pages(watching, "/api/v1/subscriptions", rp=rps[1], owner="ann", sort="lag")
    assert [one["id"] for one in at] == [of["lost"]]

    own = client_of("ben")
    assert {one["id"] for one in all_pages(own, "/api/v1/subscriptions")} == {of["none"], of["other"]}
    assert problem_code(own.get("/api/v1/subscriptions", {"owner": "ann"})) == "forbidden"
    assert problem_code(client_of("ben", operations=["subscribe"]).get("/api/v1/subscriptions")) == "forbidden"
    assert problem_code(watching.get("/api/v1/subscriptions", {"sort": "cake"})) == "invalid-request"


def log_cursor(epoch: str, offset: int) -> Any:
    return Cursor(epoch, offset)


def test_an_order_by_lag_of_too_many_says_that_it_is_not_of_all(
    new_rp: NewRp, ben: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    rp = new_rp().id
    for _ in range(3):
        subscription_create(reference=rp, principal=ben)
    subscription_create(reference=new_rp().id, principal=ben)
    for bound, most, looked_at in (("LAGS_MAX", 2, {2}), ("LOGS_MAX", 1, {1, 3})):
        with monkeypatch.context() as patched:
            patched.setattr(subscription_lists, bound, most)
            found = subscriptions_listed(sort="lag")
            assert len(found.items) in looked_at
            assert not found.complete
    assert subscriptions_listed(sort="lag").complete
    assert subscriptions_listed(sort="id").complete


# Rendezvous points: orders, search, the tree of names


def test_rps_are_sorted_and_searched_page_by_page(new_rp: NewRp, api: APIClient) -> None:
    made = [
        new_rp(name="plants/north/boiler", title="Steam"),
        new_rp(title="boiler room, no name"),
        new_rp(name="plants/south/pump", title="Water"),
        new_rp(name="Boilers/old", title=""),
        new_rp(),
    ]
    for number, row in enumerate(made):
        ends = timezone.now() + timedelta(hours=9 - number)
        RendezvousPoint.objects.filter(id=row.id).update(expires_at=ends, warn_at=ends)
    ids = [row.id for row in made]

    def listed(**asked: Any) -> list[str]:
        return [one["id"] for one in all_pages(api, "/api/v1/rps", **asked)]

    for limit in (1, 2, 500):
        assert listed(sort="created", limit=limit) == ids[::-1]
        assert listed(sort="ends", limit=limit) == ids[::-1]
        named = [ids[3], ids[0], ids[2]]
        assert listed(sort="name", limit=limit) == [*named, *sorted([ids[1], ids[4]])]
        assert listed(q="BOILER", limit=limit) == [ids[3], ids[1], ids[0]]
        assert listed(q="boiler", sort="name", limit=limit) == [ids[3], ids[0], ids[1]]
        assert listed(sort="name", prefix="plants/", limit=limit) == [ids[0], ids[2]]
    assert listed(q=ids[4][:8]) == [ids[4]]
    assert listed(q="100%") == [], "what is a wildcard elsewhere is text here"
    assert problem_code(api.get("/api/v1/rps", {"sort": "cake"})) == "invalid-request"
    assert problem_code(api.get("/api/v1/rps", {"q": "x" * 101})) == "invalid-request"
    created = api.get("/api/v1/rps", {"sort": "created", "limit": "1"}).json()["next"]
    assert problem_code(api.get("/api/v1/rps", {"sort": "ends", "cursor": created})) == "invalid-cursor"


def test_names_are_a_tree_with_counts(new_rp: NewRp, watching: APIClient, api: APIClient) -> None:
    at = {name: new_rp(name=name).id for name in ("a/b/c", "a/b/d", "a/b", "a/z", "ab", "x/y")}
    new_rp()

    top = all_pages(watching, "/api/v1/names")
    assert [(one["part"], one["name"], one["rps"], one["rp"]) for one in top] == [
        ("a", "/localhost/a/", 4, None),
        ("ab", "/localhost/ab/", 1, at["ab"]),
        ("x", "/localhost/x/", 1, None),
    ]
    assert top == all_pages(watching, "/api/v1/names", limit=1)
    below = all_pages(watching, "/api/v1/names", prefix="/localhost/a/")
    assert [(one["part"], one["rps"], one["rp"]) for one in below] == [("b", 3, at["a/b"]), ("z", 1, at["a/z"])]
    assert [one["part"] for one in all_pages(watching, "/api/v1/names", prefix="a/b")] == ["c", "d"]
    assert names_below(prefix="/localhost/a/b/c/").items == []
    assert problem_code(api.get("/api/v1/names")) == "forbidden"
    assert problem_code(watching.get("/api/v1/names", {"prefix": "a//b"})) == "invalid-request"


# Sessions: what gateways answer, put together


def row(number: int, **more: Any) -> Row:
    said = {"lag": 0, "waiting_bytes": 0, "since": 1.0 * number, **more}
    shown: dict[str, Any] = {"gateway": "g", "principal": "p", "issuer": "i", "kind": "sse", "rps": [], "readings": 0}
    return Row(id=f"g-{number}", state="live", address="", **shown, **said)


def test_the_answers_of_gateways_make_one_order() -> None:
    one = SessionListing("a", 2, [row(1, lag=5), row(3)])
    two = SessionListing("b", 2, [row(2, lag=9, waiting_bytes=1), row(4, lag=5, waiting_bytes=7)])
    first, more = merged([one, two], "lag", 3)
    assert ([found.id for found in first], more) == (["g-2", "g-4", "g-1"], True)
    rest, more = merged([one, two], "since", 4)
    assert ([found.id for found in rest], more) == (["g-1", "g-2", "g-3", "g-4"], False)
    for sort in SORTS:
        assert key_valid(sort, list(row_key(sort, row(1))))
        for key in ([], ["a", "b", "c"], [True], None, "g-1", [None]):
            assert not key_valid(sort, key)
    times: list[list[Any]] = [[math.nan, "g-1"], [math.inf, "g-1"], [-1, "g-1"], [10**30, "g-1"]]
    for wrong in times:
        assert not key_valid("since", wrong), "gateways could not read it"
    lags: list[list[Any]] = [[-(10**30), 0, "g-1"], [0, 2**63, "g-1"], [1, 0, "g-1"], [0, 1, "g-1"]]
    for wrong in lags:
        assert not key_valid("lag", wrong)
    assert not key_valid("id", ["g" * 65])


def test_sessions_are_for_those_who_oversee_and_their_order_and_cursor_are_checked(
    api: APIClient, watching: APIClient, client_of: ClientOf
) -> None:
    assert problem_code(api.get("/api/v1/sessions")) == "forbidden"
    found = watching.get("/api/v1/sessions").json()  # no gateway runs here
    assert found == {"items": [], "next": None, "matching": 0, "gateways": {"asked": 0, "answered": 0}}
    assert problem_code(watching.get("/api/v1/sessions", {"sort": "cake"})) == "invalid-request"
    assert problem_code(watching.get("/api/v1/sessions", {"cursor": "c2Vzc2lvbnMtaWQgMQ"})) == "invalid-cursor"
    root = client_of("root", admin=True)
    for wrong in ({}, {"principal": "a", "rp": "b"}, {"principal": ""}):
        assert problem_code(root.post("/api/v1/sessions/disconnect", wrong, format="json")) == "invalid-request"
    assert problem_code(root.delete("/api/v1/sessions/g-1?retry=maybe")) == "invalid-request"
    assert problem_code(root.delete("/api/v1/sessions/g-1")) == "not-found"
