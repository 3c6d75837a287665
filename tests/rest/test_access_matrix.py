"""Role x operation -> expected answer, for every endpoint that the URL configuration and the edge's router have.

The endpoints are read from the code, the answers from access_matrix.py: a new endpoint without a row fails here, with the
row to add. All requests go to one gateway process with a real database and a real Redis.
"""

from __future__ import annotations

import base64
import inspect
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from demo.harness.servers import ROOT
from eventing.gateway import router
from eventing.intakes.rules.formats import HOOKS
from eventing.subscriptions.push.websub.topics import HUB_PATH, TOPICS_PATH
from tests.access.issuer_server import IssuerServer
from tests.gateway.server import PLAIN, LiveGateway, Prepared, environment, event
from tests.rest.access_matrix import MATRIX, ROLES
from tests.subscriptions.push.ws_eventing.messages import DELIVERY, W3C, envelope

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
WEBSOCKET = "/ws"
ANYTHING = "*"
CSRF = "a" * 32  # the form of a CSRF token: whoever can set the cookie knows what to send
Endpoint = tuple[str, str]

BODIES: dict[Endpoint, Any] = {
    ("POST", "/api/v1/alarms/{alarm_id}/mute"): {"for_s": 60},
    ("POST", "/api/v1/contact-points"): {"name": "x", "kind": "other"},
    ("POST", "/api/v1/rps/{reference}/events"): event("a"),
    ("PATCH", "/api/v1/rps/{reference}"): {"title": "changed"},
    ("PATCH", "/api/v1/subscriptions/{subscription_id}"): {"history": {"max_events": 5}},
    ("POST", "/api/v1/subscriptions/{subscription_id}/ack"): {"cursor": "a:1"},
    ("PATCH", "/api/v1/plan/routes"): {"mode": None},
    ("PATCH", "/api/v1/plan/routes/{reference}"): {"mode": None},
    ("POST", "/api/v1/rps/{reference}/move"): {"domain": "b.example"},
    ("POST", "/api/v1/rps/{reference}/succession"): {"electors": ["b.example", "c.example"]},
    ("POST", "/api/v1/rps/{reference}/policy/explain"): {"operation": "describe"},
    ("POST", "/api/v1/rps/{reference}/replicas"): {"peer": "b.example"},
    ("POST", "/api/v1/replicas"): {"rp": "a" * 26},
    ("POST", "/api/v1/tokens"): {"subject": "somebody"},
    ("POST", "/api/v1/rps/{reference}/trim"): {"before": "all"},
    ("POST", "/api/v1/peers/{name}/replay"): {"rp": "a" * 26},
    ("POST", "/api/v1/sessions/disconnect"): {"principal": "nobody-here"},
    ("PUT", "/api/v1/watches"): {"watch": []},
    ("POST", "/api/v1/keys/rotate"): {"signs_after_s": 86_400},
    ("POST", "/api/v1/revocations"): {"kind": "token", "value": "of-nobody"},
    ("POST", "/rps/new"): {
        "lease": "1",
        "lease_unit": "hours",
        "max_events": "9",
        "max_age_unit": "days",
        "ack": "stored",
    },
    ("POST", "/api/v1/cloudevents/subscriptions"): {
        "config": {"rp": "{reference}"},
        "protocol": "HTTP",
        "sink": "https://app.example.org/",
    },
    ("POST", "/api/v1/subscriptions/{subscription_id}/endpoint/secret"): {"secret": "whsec_" + "A" * 40},
    ("POST", "/api/v1/rps/{reference}/ws-eventing"): envelope(W3C, "Subscribe", DELIVERY),
    ("POST", "/api/v1/subscriptions/{subscription_id}/ws-eventing/{key}"): envelope(W3C, "GetStatus"),
    ("POST", "/rps/{reference}/renew"): {"lease": "1", "lease_unit": "hours"},
}
"""What is sent; {} to an API endpoint that is not named here, an empty form to a page."""

CONSUMING = frozenset({("POST", "/rps/{reference}/delete")})
"""Those that leave nothing to ask the next one about: each role gets a rendezvous point of its own."""

SCRIPT = """
import json, sys, django
django.setup()
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from portal.accounts.services.users import user_invite
made = {}
for role in ("viewer", "operator", "administrator"):
    user, _ = user_invite(name=role, role=role)
    keys = []
    for _ in range(2):
        session = SessionStore()
        session[SESSION_KEY] = str(user.pk)
        session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
        session[HASH_SESSION_KEY] = user.get_session_auth_hash()
        session.save()
        keys.append(session.session_key)
    made[role] = keys
victim, _ = user_invite(name="victim", role="viewer")
print(json.dumps({"sessions": made, "victim": victim.pk, "cookies": [settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME]}))
"""


# What there is


def endpoints() -> set[Endpoint]:
    """Every method and path, from the URL configuration and the edge's tables."""
    found = {(method, f"/api/v1/rps/{{reference}}/{action}") for method, action in router._RP_ACTIONS}
    found |= {
        (method, f"/api/v1/subscriptions/{{subscription_id}}/{action}")
        for method, action in router._SUBSCRIPTION_ACTIONS
    }
    found |= {("GET", path) for path in router._HEALTH}
    found.add(("GET", router.METRICS))
    found |= {(method, f"{HOOKS}{{token}}") for method in ("GET", "POST")}
    found |= {("POST", HUB_PATH), ("GET", f"{TOPICS_PATH}{{reference}}")}
    found.add(("GET", WEBSOCKET))
    for path, view in _views(get_resolver().url_patterns, "/"):
        found |= {(method, path) for method in _methods(view)}
    return found


def _views(patterns: list[Any], before: str) -> Iterator[tuple[str, Any]]:
    for pattern in patterns:
        path = before + _template(str(pattern.pattern))
        if isinstance(pattern, URLResolver):
            yield from _views(pattern.url_patterns, path)
        else:
            assert isinstance(pattern, URLPattern)
            yield path, pattern.callback


def _template(pattern: str) -> str:
    """A Django path with its parts as `{name}`; a regular expression as what it begins with, and `*`."""
    if pattern == "":
        return ""
    if pattern.startswith("^"):
        return pattern[1:].partition("(")[0] + "/" + ANYTHING
    return re.sub(r"<(?:[a-z_]+:)?([a-z_]+)>", r"{\1}", pattern)


def _methods(view: Any) -> set[str]:
    """The methods that a view offers: those of its class, those that its decorators let through, else GET and POST."""
    of_class = getattr(view, "view_class", None) or getattr(view, "cls", None)
    if of_class is not None:
        names = of_class.http_method_names
        return {method for method in METHODS if method.lower() in names and hasattr(of_class, method.lower())}
    while view is not None:
        named = inspect.getclosurevars(view).nonlocals.get("request_method_list")
        if named is not None:
            return set(METHODS) & set(named)
        view = getattr(view, "__wrapped__", None)
    return {"GET", "POST"}


# What is expected


def rows() -> dict[Endpoint, list[int]]:
    """The matrix: a status per role, for each method and path, in its order."""
    table: dict[Endpoint, list[int]] = {}
    head, *lines = [line for line in MATRIX.splitlines() if line.strip() and not line.startswith("#")]
    assert head.split() == [role[:3] for role in ROLES], "the table's columns are the roles"
    for line in lines:
        method, path, *cells = line.split()
        assert (method, path) not in table, f"two rows for {method} {path}"
        assert len(cells) == len(ROLES), f"{method} {path} has {len(cells)} statuses for {len(ROLES)} roles"
        table[method, path] = [int(cell) for cell in cells]
    return table


def test_every_endpoint_has_a_row() -> None:
    missing = sorted(endpoints() - set(rows()))
    lines = "\n".join(f"{method:<6} {path} " + " ".join(["?"] * len(ROLES)) for method, path in missing)
    assert not missing, (
        f"Nobody has said who may do this. Add these rows to tests/rest/access_matrix.py, with a status for each of "
        f"{', '.join(ROLES)}:\n{lines}"
    )


def test_every_row_has_an_endpoint() -> None:
    extra = sorted(set(rows()) - endpoints())
    assert not extra, f"These rows of tests/rest/access_matrix.py are for endpoints that do not exist: {extra}"


# What is answered


@dataclass(frozen=True)
class Scene:
    """A running edge with what the requests are about, and a client for each role."""

    live_gateway: LiveGateway
    parts: dict[str, str]
    clients: dict[str, httpx.Client]
    csrf: dict[str, str]

    def status(self, role: str, method: str, path: str) -> int:
        """What `role` is answered."""
        client, url, parts = self.clients[role], path, self.parts
        if (method, path) in CONSUMING:
            parts = {**parts, "reference": self.live_gateway.create_rp(policy=[])}
        for name, value in parts.items():
            url = url.replace(f"{{{name}}}", value)
        url = url.replace(ANYTHING, "nothing-here")
        assert "{" not in url, f"say in Scene.parts what stands for the parts of {path}"
        headers = {"X-CSRFToken": self.csrf[role]} if role in self.csrf else {}
        if method == "DELETE":
            headers["If-Match"] = '"999"'
        sent: dict[str, Any] = {}
        if method != "GET":
            if isinstance(content := BODIES.get((method, path)), bytes):
                sent = {"content": content}
            elif path.startswith("/api/"):
                body = json.dumps(BODIES.get((method, path), {}))
                sent = {"json": json.loads(body.replace("{reference}", parts["reference"]))}
            else:
                sent = {"data": BODIES.get((method, path), {"nothing": ""})}
        if path == WEBSOCKET:
            key = base64.b64encode(os.urandom(16)).decode()
            headers |= {"Connection": "Upgrade", "Upgrade": "websocket"}
            headers |= {"Sec-WebSocket-Key": key, "Sec-WebSocket-Version": "13", "Sec-WebSocket-Protocol": "herald.v1"}
        with client.stream(method, url, headers=headers, **sent) as answer:
            if not path.endswith("/stream") and path != WEBSOCKET:
                answer.read()
            return answer.status_code


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[Scene]:
    """One gateway, and everybody who asks it."""
    folder = tmp_path_factory.mktemp("matrix")
    with (
        IssuerServer() as issuer,
        LiveGateway(
            folder / "var", prepared, allow_private_issuers=1, requests_per_s=0, failed_tokens_per_s=0
        ) as live_gateway,
    ):
        made = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=environment(live_gateway.data_dir, port=live_gateway.port()),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert made.returncode == 0, made.stderr
        console = json.loads(made.stdout)
        reading = ["describe", "subscribe", "history"]
        policy = [
            {"issuer": "domain", "claims": {"sub": {"equals": "reader"}}, "allow": reading},
            {"issuer": issuer.url, "allow": reading},
        ]
        with live_gateway.http("creator") as http:
            rp = http.post("/api/v1/rps", json={"policy": policy}).raise_for_status().json()["id"]
            other = http.post("/api/v1/rps", json={}).raise_for_status().json()["id"]
            subscription = http.post(f"/api/v1/rps/{rp}/subscriptions", json={}).raise_for_status().json()["id"]
            intake = http.post(f"/api/v1/rps/{rp}/intakes", json={}).raise_for_status().json()["id"]
        revoke = {"kind": "token", "value": "stolen"}
        live_gateway.admin.post("/api/v1/revocations", json=revoke).raise_for_status()
        tokens = {
            "garbage": "not-a-token",
            "expired": live_gateway.token("creator", lease_s=-60),
            "revoked": live_gateway.token("root", admin=True, jti="stolen"),
            "foreign": live_gateway.token("creator", admin=True, iss="https://elsewhere.example"),
            "citizen": issuer.token("citizen-1"),
            "nobody": live_gateway.token("nobody"),
            "reader": live_gateway.token("reader"),
            "creator": live_gateway.token("creator"),
            "watcher": live_gateway.token("creator", scopes=[{"rps": [rp], "ops": reading}]),
            "elsewhere": live_gateway.token(
                "creator", scopes=[{"rps": [other], "ops": [*reading, "publish", "administer"]}]
            ),
            "admin": live_gateway.token("root", admin=True),
            "limited": live_gateway.token("root", admin=True, ops=["administer"]),
        }
        sessions = {"viewer": "viewer", "operator": "operator", "console": "administrator", "nocsrf": "administrator"}
        clients = {"stranger": httpx.Client(base_url=live_gateway.url(), **PLAIN)}
        session_cookie, csrf_cookie = console["cookies"]
        csrf = {"visitor": CSRF}
        clients["visitor"] = httpx.Client(base_url=live_gateway.url(), cookies={csrf_cookie: CSRF}, **PLAIN)
        for role, token in tokens.items():
            clients[role] = httpx.Client(
                base_url=live_gateway.url(), headers={"Authorization": f"Bearer {token}"}, **PLAIN
            )
        for role, user in sessions.items():
            cookies = {session_cookie: console["sessions"][user][role == "nocsrf"]}
            if role != "nocsrf":
                csrf[role] = cookies[csrf_cookie] = CSRF
            clients[role] = httpx.Client(base_url=live_gateway.url(), cookies=cookies, **PLAIN)
        parts = {
            "reference": rp,
            "subscription_id": subscription,
            "intake_id": intake,
            "kid": "no-such-key",
            "name": "nobody.test",
            "revocation_id": "999999",
            "user_id": str(console["victim"]),
            "token": "no-such-link",
            "origin": "nobody.example",
            "alarm_id": "999999",
            "contact_point": "nobody",
            "decision": "999999",
            "session_id": "nowhere-1",
            "digest": "0" * 64,
            "run_id": "999999",
            "table": "rps",
            "key": "of-nothing",
            "address": "nowhere",
        }
        assert set(clients) == set(ROLES)
        yield Scene(live_gateway, parts, clients, csrf)
        for client in clients.values():
            client.close()
        assert "Traceback" not in live_gateway.log


@pytest.mark.long
def test_every_role_is_answered_as_the_matrix_says(scene: Scene) -> None:
    began, wrong = time.monotonic(), []
    for (method, path), expected in rows().items():
        found = [scene.status(role, method, path) for role in ROLES]
        for role, status, wanted in zip(ROLES, found, expected, strict=True):
            if status != wanted:
                wrong.append(f"{method} {path}: {role} is answered {status}, the matrix says {wanted}")
    assert not wrong, f"after {time.monotonic() - began:.0f} s:\n" + "\n".join(wrong)
