"""Which way an event took through three domains, from each one's point of view."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner
from herald.commands import cli

from demo.harness.network import Network
from demo.harness.servers import wait_for

pytestmark = [pytest.mark.processes]
SHAPE = [("a", "b"), ("b", "c")]


def hops(path: Any) -> set[tuple[str, str]]:
    return {(hop["source"], hop["target"]) for hop in path["hops"]}


def test_the_way_of_an_event_is_known_at_its_end_and_gathered_at_its_origin(network: Network) -> None:
    rp = network.replicated_rp("a", "b")
    network.join(rp, "c", "b")
    network.publish(rp, "a")
    network.converged(rp)
    at_the_end = network["c"].ask("GET", f"/api/v1/rps/{rp}/path?offset=1")
    assert at_the_end["route"] == ["a.test", "b.test", "c.test"]
    where = f"/api/v1/rps/{rp}/path?feed={at_the_end['feed']}&sequence=1"

    alone = network["a"].ask("GET", where)
    assert hops(alone) == set()
    assert {one["domain"]: one["held"] for one in alone["domains"]}["c.test"] is None

    def gathered() -> Any:
        path = network["a"].ask("GET", f"{where}&ask=true")
        about = {one["domain"]: one for one in path["domains"]}
        return about if about["c.test"]["held"] else None  # b learns of c's vector with the next exchange

    about = wait_for(gathered)
    assert about["b.test"]["route"] == ["a.test", "b.test"]
    assert about["b.test"]["answered"]
    assert about["b.test"]["stored_at"]
    assert (about["c.test"]["answered"], about["c.test"]["known_from"]) == (None, ["b.test"])

    between = network["b"].ask("GET", f"{where}&ask=true")
    assert hops(between) == {("a.test", "b.test"), ("b.test", "c.test")}

    asking = ["path", rp, "1", "--url", network["c"].url, "--token", network["c"].token(admin=True, subject="root")]
    shown = CliRunner().invoke(cli, asking)
    assert shown.exit_code == 0, shown.output
    assert "Way here: a.test > b.test > c.test" in shown.output
    assert "  a.test > b.test  " in shown.output
