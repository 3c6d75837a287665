"""What there is a picture of, and what each shows: docs/screens/README.md is made from it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.portal.console.browsing import WITHIN_MS, eventually, expect

Prepare = Callable[[Any], None]
NORTH = "tides/north-pier"
BETWEEN_PX = (1024, 1152)
"""Widths of small laptops and tablets, at which the navigation has its column and tables have little room left."""


@dataclass(frozen=True)
class Shot:
    """A picture. `path` may name an RP of the scene in braces; `prepare` brings the open page to what is to be seen.

    `live`: whether the page is, when it is taken. `phone`: whether it is taken in that size as well. `table`: whether it is one
    of tables, which is taken at the widths between, too (BETWEEN_PX).
    """

    name: str
    title: str
    path: str
    says: str
    prepare: Prepare = lambda page: None
    live: bool = True
    phone: bool = True
    table: bool = False


def name_of(state: str, shot: Shot, size: str = "") -> str:
    """What its picture is called, without ".png": the state that the domain is in goes first ("" for none).

    `size`: "phone", or one of BETWEEN_PX in digits; "" for the wide one.
    """
    return "-".join(filter(None, (state, shot.name, size)))


def _tab(name: str) -> Prepare:
    def open_tab(page: Any) -> None:
        page.get_by_role("tab", name=name).click()
        expect(page.get_by_role("tabpanel").locator(".loading")).to_have_count(0)

    return open_tab


def _explained(page: Any) -> None:
    _tab("Access")(page)
    page.get_by_role("button", name="Explain").click()
    expect(page.locator("#explanation")).not_to_be_empty(timeout=WITHIN_MS)


def _policy_edited(page: Any) -> None:
    _tab("Access")(page)
    page.locator("#change-policy").click()
    page.get_by_role("button", name="One subject: publish").click()
    page.get_by_label(re.compile(r"condition 1: value")).last.fill("north-gauge")
    page.get_by_role("radio", name="No token").check()
    page.get_by_role("button", name="Explain").click()
    expect(page.locator("#explanation")).to_contain_text("Saved policy", timeout=WITHIN_MS)


def _policy_as_json(page: Any) -> None:
    _policy_edited(page)
    page.get_by_role("radio", name="JSON").check()


def _selected(page: Any) -> None:
    expect(page.locator("[data-size]", has_text="held").first).to_be_visible(timeout=WITHIN_MS)
    for place in range(3):
        page.locator("[data-pick]").nth(place).check()


def _deletion_asked(page: Any) -> None:
    _selected(page)
    page.get_by_role("button", name="Delete…").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def _searched(page: Any) -> None:
    _tab("Events")(page)
    page.get_by_text("Search and download").click()
    page.get_by_label("Type", exact=True).first.fill("tide")
    page.locator("#event-filters").get_by_role("button", name="Search").click()
    expect(page.locator("#found > li").first).to_be_visible(timeout=WITHIN_MS)
    page.locator("#found summary").first.click()


def _found(page: Any) -> None:
    page.keyboard.press("Control+k")
    page.get_by_role("dialog", name="Search").get_by_role("combobox").fill("tide")
    expect(page.get_by_role("option").filter(has_text="north-pier").first).to_be_visible(timeout=WITHIN_MS)


def _contact_points(page: Any) -> None:
    expect(page.locator("#contact-points tbody tr").first).to_be_visible(timeout=WITHIN_MS)
    page.get_by_role("button", name="Add…").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def _attempt_opened(page: Any) -> None:
    expect(page.locator("#attempts summary").first).to_be_visible(timeout=WITHIN_MS)
    page.locator("#attempts summary").nth(1).click()


def _rule_asked(page: Any) -> None:
    _tab("Watching")(page)
    page.get_by_role("button", name="Add a rule").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def _delete_asked(page: Any) -> None:
    page.locator("#delete-rp").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def _event_proved(page: Any) -> None:
    expect(page.locator(".ts-row").first).to_be_visible(timeout=WITHIN_MS)
    page.get_by_role("button", name="Pause").click()
    page.locator(".ts-row").nth(3).click()
    expect(page.locator("#prove, #proof")).to_be_visible(timeout=WITHIN_MS)
    if page.locator("#prove").count():  # what is sealed already is proved without asking
        page.locator("#prove").click()
    expect(page.locator("#proof")).to_contain_text("erified")


def _peer_opened(page: Any) -> None:
    expect(page.get_by_text("Safety number", exact=True)).to_be_visible(timeout=WITHIN_MS)


def _drawn(selector: str) -> Prepare:
    def wait(page: Any) -> None:
        expect(page.locator(selector).first).to_be_visible(timeout=WITHIN_MS)

    return wait


def _examples(page: Any) -> None:
    eventually(page, lambda: "Bearer" in page.locator("[data-snippet=curl]").inner_text(), "the example has a token")


FULL = (
    Shot(
        "overview",
        "Overview",
        "/",
        "The domain at a glance: rates, sessions, what waits for peers, alarms, the busiest.",
        _drawn("#hot tbody tr"),
    ),
    Shot(
        "alarms",
        "Alarms",
        "/alarms",
        "What is wrong, since when, who looks after it.",
        _drawn("#listing tbody tr"),
        table=True,
    ),
    Shot(
        "contact-point",
        "A new contact point",
        "/alarms",
        "Who is notified of alarms, by webhook or mail.",
        _contact_points,
    ),
    Shot(
        "find",
        "Ctrl-K",
        "/",
        "Pages, rendezvous points, peers, subscriptions and principals, found from every page.",
        _found,
    ),
    Shot(
        "rps",
        "Rendezvous points",
        "/rps?sort=name",
        "Every rendezvous point with its rates, readers, lag, size and alarms; names as a tree.",
        _drawn("[data-size]:has-text('held')"),
        table=True,
    ),
    Shot(
        "rps-selected",
        "Several rendezvous points",
        "/rps?sort=name",
        "What can be done with all that are selected.",
        _selected,
        table=True,
    ),
    Shot(
        "rps-delete",
        "Before several are deleted",
        "/rps?sort=name",
        "What is deleted with them, and a number to type.",
        _deletion_asked,
    ),
    Shot(
        "rp",
        "One rendezvous point",
        "/rps/{tides/north-pier}",
        "What flows now, how full the history is, the lease.",
        _drawn("#load canvas"),
    ),
    Shot(
        "rp-events",
        "Its events",
        "/rps/{tides/north-pier}",
        "Events as they come, each to be opened, and a form to publish one.",
        _tab("Events"),
    ),
    Shot(
        "rp-search",
        "Search in its events",
        "/rps/{tides/north-pier}",
        "By type, source, subject, text and time; what is found is downloaded as JSON lines, and each event has a link.",
        _searched,
    ),
    Shot(
        "rp-readers",
        "Its readers",
        "/rps/{ships/positions}",
        "Sessions, the slowest first, and durable subscriptions with how far they are behind.",
        _tab("Readers"),
        table=True,
    ),
    Shot(
        "rp-access",
        "Its policy",
        "/rps/{tides/north-pier}",
        "Who may do what, in words, and why somebody may or may not.",
        _explained,
    ),
    Shot(
        "rp-policy",
        "Its policy, edited",
        "/rps/{tides/north-pier}",
        "Rules as rows, checked while they are typed, and explained before they are saved.",
        _policy_edited,
        table=True,
    ),
    Shot(
        "rp-policy-json",
        "Its policy, as JSON",
        "/rps/{tides/north-pier}",
        "The same as JSON, in step with the rows.",
        _policy_as_json,
        phone=False,
    ),
    Shot(
        "rp-replicas",
        "Its replicas",
        "/rps/{tides/north-pier}",
        "Which domains hold it, how far each is, and how far the own events are sealed.",
        _tab("Replicas"),
    ),
    Shot(
        "rp-watching",
        "Its watch rules",
        "/rps/{tides/north-pier}",
        "What is to be so there, whether it is, and who must be reading.",
        _tab("Watching"),
    ),
    Shot(
        "rp-rule",
        "A new watch rule",
        "/rps/{cranes/2/state}",
        "Limits with their units; what the domain refuses is said where it was typed.",
        _rule_asked,
    ),
    Shot(
        "rp-administration",
        "Its activity log",
        "/rps/{ships/positions}",
        "Administrative events in sentences, by kind; retention is one line.",
        _tab("Activity"),
    ),
    Shot(
        "rp-paused",
        "A paused one",
        "/rps/{customs/declarations}",
        "Who paused it and why; publishers are told the same.",
    ),
    Shot(
        "rp-delete",
        "Before it is deleted",
        "/rps/{works/dredger}",
        "What cannot be undone is typed first.",
        _delete_asked,
        phone=False,
    ),
    Shot(
        "rp-new",
        "A new rendezvous point",
        "/rps/new",
        "Name, lease and history, with what the domain grants.",
        live=False,
        phone=False,
    ),
    Shot(
        "timescale",
        "Timescale",
        "/timescale?rp={tides/north-pier}&rp={ships/arrivals}&rp={forecast/wind}&rp={cranes/1/state}",
        "Events of several rendezvous points on one axis; one of them proved in the browser.",
        _event_proved,
    ),
    Shot(
        "federation",
        "Federation",
        "/federation",
        "The domain among its peers: one well, one that cannot be reached, one that asks to be let in.",
        _drawn("#peers tbody tr"),
    ),
    Shot(
        "federation-peer",
        "A peer that gets nothing",
        "/federation/pilots.test",
        "Why, since when, how much waits, when it is tried again, and what can be done.",
        _peer_opened,
    ),
    Shot(
        "overlay",
        "Overlay",
        "/overlay",
        "The domains that found each other, and the links of this one with their reasons.",
        _drawn("#map a.overlay-dot"),
    ),
    Shot(
        "self-administration",
        "Self-administration",
        "/self-administration",
        "What the domain decides by itself about replicas, routes and homes, why, and what limits it.",
        _drawn("#routes tbody tr"),
    ),
    Shot(
        "subscriptions",
        "Subscriptions",
        "/subscriptions",
        "Durable subscriptions of all rendezvous points, with lag and lease.",
        _drawn("#listing tbody tr"),
        table=True,
    ),
    Shot(
        "deliveries",
        "Deliveries",
        "/deliveries",
        "Endpoints of push subscriptions, those that need a person first: requests, backlog, next try.",
        _drawn("#listing tbody tr"),
        table=True,
    ),
    Shot(
        "delivery",
        "One endpoint",
        "/deliveries/{hook/billing/arrivals}",
        "Attempts with request, answer and timing; what was given up, to be sent again.",
        _attempt_opened,
    ),
    Shot(
        "rp-intakes",
        "Its intakes",
        "/rps/{pilots/requests}",
        "Addresses for other systems' webhooks, and when each was last used.",
        _tab("Intakes"),
    ),
    Shot(
        "sessions",
        "Sessions",
        "/sessions",
        "Live connections of all gateways, the slowest first, and who they are.",
        _drawn("#listing tbody tr"),
        table=True,
    ),
    Shot("leases", "Leases", "/leases", "What ends next, of every kind.", _drawn("#listing tbody tr"), table=True),
    Shot(
        "keys",
        "Tokens and keys",
        "/keys",
        "Which key signs, a form for tokens, which were issued, what is revoked.",
        _drawn("#tokens tbody tr"),
        table=True,
    ),
    Shot(
        "quotas",
        "Quotas",
        "/quotas",
        "Limits, their use, the settings that change them, and who holds most.",
        table=True,
    ),
    Shot(
        "audit",
        "Audit",
        "/audit",
        "Who did what, on what, with which outcome; refusals too.",
        _drawn("#listing tbody tr"),
        table=True,
    ),
    Shot(
        "system",
        "System",
        "/system",
        "Processes, stores, versions, findings of doctor, settings and where each value comes from.",
        _drawn("#processes tbody tr"),
        table=True,
    ),
    Shot("users", "Users", "/users", "Who may use the console, and how.", live=False),
    Shot(
        "login-device",
        "Log a program in",
        "/login/device",
        "Where the code is typed that a program shows.",
        live=False,
    ),
    Shot(
        "api",
        "The API",
        "/api/docs#rps_publish",
        "Every request with its members, examples and a command to copy.",
        _drawn("main h2"),
        live=False,
    ),
    Shot("docs", "The documents", "/docs/", "The documents of this release, with search.", live=False),
    Shot("account", "Your account", "/account", "Active sessions.", live=False, phone=False),
    Shot(
        "start",
        "Start here",
        "/start?rp={works/dredger}",
        "Snippets with a token that works for ten minutes (left out of the picture), and the first event arriving.",
        _examples,
    ),
)
"""Of a domain that is busy."""

REPORTS = (
    Shot(
        "reports",
        "Reports: load",
        "/reports?job=load",
        "Computed from the access records by Spark: rates, latencies, hot rendezvous points.",
        live=False,
    ),
    Shot(
        "reports-access",
        "Reports: access",
        "/reports?job=access",
        "Usage by principal, refusals and anomalies.",
        live=False,
    ),
)
"""What is computed meanwhile, and takes longest."""

EMPTY = (
    Shot("start", "Start here", "/", "The first page of a new domain.", live=False),
    Shot("rps", "Rendezvous points", "/rps", "Before there are any."),
    Shot("timescale", "Timescale", "/timescale", "Before one is chosen.", live=False, phone=False),
    Shot("federation", "Federation", "/federation", "A domain without peers: what they are, and how one is added."),
    Shot("overlay", "Overlay", "/overlay", "A domain without an overlay: what it is, and how to join one."),
    Shot("self-administration", "Self-administration", "/self-administration", "Before anything was decided."),
    Shot("alarms", "Alarms", "/alarms", "Nothing is wrong.", phone=False),
    Shot("subscriptions", "Subscriptions", "/subscriptions", "Before there are any.", phone=False),
    Shot("quotas", "Quotas", "/quotas", "Limits before anything is held.", phone=False),
    Shot("sessions", "Sessions", "/sessions", "Nobody is connected but the console.", phone=False),
    Shot("deliveries", "Deliveries", "/deliveries", "Before there are any.", phone=False),
    Shot("leases", "Leases", "/leases", "Nothing that ends.", phone=False),
    Shot("reports", "Reports", "/reports?job=load", "Before the first one.", live=False, phone=False),
)
"""Of a domain that has just been started."""

BROKEN = (
    Shot("overview", "Overview", "/", "The domain does not answer when the page asks.", phone=False),
    Shot("rp", "One rendezvous point", "/rps/{tides/north-pier}", "The same, at a rendezvous point.", phone=False),
    Shot("federation", "Federation", "/federation", "The same.", phone=False),
    Shot(
        "self-administration",
        "Self-administration",
        "/self-administration",
        "Parts that could not be read, each by itself.",
        phone=False,
    ),
    Shot("subscriptions", "Subscriptions", "/subscriptions", "A list that could not be read.", phone=False),
    Shot(
        "delivery",
        "One endpoint",
        "/deliveries/{hook/tide-app/levels}",
        "An endpoint that could not be read.",
        phone=False,
    ),
    Shot(
        "timescale",
        "Timescale",
        "/timescale?rp={tides/north-pier}",
        "A history that could not be read.",
        live=False,
        phone=False,
    ),
    Shot("system", "System", "/system", "The gateway that served the page is gone.", live=False, phone=False),
    Shot("reports", "Reports", "/reports?job=load", "Reports that could not be read.", live=False, phone=False),
)
"""Nobody answers what a page asks when it is opened."""

AWAY = (
    Shot(
        "overview",
        "Overview",
        "/",
        "The domain is gone while the page is open: what is shown is old, and says so.",
        _drawn("#hot tbody tr"),
    ),
    Shot(
        "rp",
        "One rendezvous point",
        "/rps/{tides/north-pier}",
        "The same, at a rendezvous point.",
        _drawn("#load canvas"),
        phone=False,
    ),
    Shot("federation", "Federation", "/federation", "The same.", _drawn("#peers tbody tr"), phone=False),
    Shot(
        "subscriptions",
        "Subscriptions",
        "/subscriptions",
        "The rows stay; a notice says that they are old.",
        _drawn("#listing tbody tr"),
        phone=False,
    ),
    Shot("system", "System", "/system", "The same.", _drawn("#processes tbody tr"), phone=False),
)
"""The domain is lost, and the pages try to come back."""

OUTSIDE = (
    Shot(
        "endpoint-page",
        "The page of an endpoint",
        "/endpoint#a-link",
        "For whoever has a link: it opens the page of one endpoint, without an account.",
        live=False,
    ),
    Shot(
        "login",
        "Log in",
        "/login",
        "For who has no session; the first start prints a link instead.",
        live=False,
        phone=False,
    ),
)
"""Without a session."""

REFUSED = (
    Shot(
        "not-found",
        "Nothing there",
        "/rps/no-such-one",
        "An address at which there is nothing.",
        live=False,
        phone=False,
    ),
)
"""Answers that are no page."""
