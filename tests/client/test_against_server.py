"""The client and the command against a real domain as processes: promises kept through kills and restarts."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import herald.subscription
import pytest
from click.testing import CliRunner
from herald import Client, Closed, Gap, Problem, Received
from herald.commands import cli
from herald.subscription import Subscription
from herald.sync import Client as SyncClient

from demo.harness.servers import ROOT, Domain, wait_for

pytestmark = pytest.mark.processes
WAIT_S = 60.0


@pytest.fixture
async def client(domain: Domain) -> AsyncIterator[Client]:
    async with Client(domain.url, token=domain.token(admin=True)) as made:
        yield made


def fresh_name() -> str:
    return f"/localhost/client/{uuid.uuid4().hex[:12]}/"


@pytest.fixture
async def rp(client: Client) -> str:
    """The name of a new RP."""
    return (await client.rps.create(name=fresh_name(), lease_s=600)).name


async def take(subscription: Subscription, count: int) -> list[Any]:
    async with asyncio.timeout(WAIT_S):
        return [await anext(subscription) for _ in range(count)]


def data(items: list[Any]) -> list[Any]:
    return [item.data for item in items]


# ---- rendezvous points ----


async def test_a_rendezvous_point_is_created_described_changed_renewed_listed_and_deleted(client: Client) -> None:
    name = fresh_name()
    made = await client.rps.create(name=name, title="First", lease_s=120, history={"max_events": 50})
    assert (made.name, made.title, made.lease.granted_s) == (name, "First", 120)
    changed = await client.rps.update(name, {"title": "Second"}, if_match=made.etag)
    assert changed.title == "Second"
    with pytest.raises(Problem) as caught:
        await client.rps.update(made.id, {"title": "Third"}, if_match=made.etag)
    assert (caught.value.code, caught.value.status) == ("precondition-failed", 412)
    assert (await client.rps.renew(name, 300)).granted_s == 300
    assert (await client.rps.get(made.id)).document["history"]["max_events"] == 50
    await client.rps.delete(name)
    with pytest.raises(Problem) as caught:
        await client.rps.get(name)
    assert caught.value.code in ("not-found", "gone")


async def test_a_name_without_slashes_means_one_under_the_domain(client: Client) -> None:
    name = f"client-{uuid.uuid4().hex[:12]}"
    made = await client.rps.create(name=name)
    assert made.name == f"/localhost/{name}/"
    assert (await client.rps.renew(name, 60)).granted_s >= 60
    assert (await client.publish(name, 1)).offset == 1
    assert (await client.publish_http(name, 2))[0].offset == 2
    await client.rps.delete(name)


async def test_the_list_goes_over_all_pages(client: Client) -> None:
    prefix = fresh_name()
    for number in range(5):
        await client.rps.create(name=f"{prefix}{number}/")
    found = [rp.name async for rp in client.rps.list(prefix=prefix, limit="2")]
    assert found == [f"{prefix}{number}/" for number in range(5)]


# ---- publish and subscribe ----


@pytest.mark.parametrize("value", [{"a": [1, None, True]}, "grüße\n", b"\x00\xff", 12.5, [], "", None])
async def test_data_arrives_as_it_was_published(client: Client, rp: str, value: Any) -> None:
    async with client.subscribe(rp) as subscription:
        confirmation = await client.publish(rp, value, type="org.example.thing", subject="s")
        (received,) = await take(subscription, 1)
    assert (received.data, received.type, received.event.get("subject")) == (value, "org.example.thing", "s")
    assert (received.id, received.offset, received.epoch) == (confirmation.id, confirmation.offset, confirmation.epoch)


async def test_publishing_the_same_event_again_changes_nothing(client: Client, rp: str) -> None:
    event = herald.event("once")
    assert not (await client.publish(rp, event)).duplicate
    assert (await client.publish(rp, event)).duplicate
    assert (await client.publish_http(rp, event))[0].duplicate
    assert (await client.rps.get(rp)).document["offset"] == 1


async def test_batches_are_confirmed_event_by_event_over_both_bindings(client: Client, rp: str) -> None:
    over_websocket = await (await client.submit(rp, ["a", "b"]))
    over_http = await client.publish_http(rp, "c", "d")
    assert [one.offset for one in [*over_websocket, *over_http]] == [1, 2, 3, 4]
    async with client.subscribe(rp, from_="earliest") as subscription:
        assert data(await take(subscription, 4)) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(("start", "expected"), [("earliest", [1, 2, 3, 4]), ("last", [3, 4]), ("now", [4])])
async def test_reading_begins_where_it_was_asked_to(client: Client, rp: str, start: str, expected: list[int]) -> None:
    for number in (1, 2, 3):
        await client.publish(rp, number)
    async with client.subscribe(rp, from_=start) as subscription:
        await client.publish(rp, 4)
        assert data(await take(subscription, len(expected))) == expected


async def test_a_rendezvous_point_can_be_read_twice_by_id_and_name(client: Client, rp: str) -> None:
    id = (await client.rps.get(rp)).id
    async with client.subscribe(rp) as by_name, client.subscribe(id) as by_id, client.subscribe(id) as again:
        await client.publish(rp, 1)
        for subscription in (by_name, by_id, again):
            assert data(await take(subscription, 1)) == [1]


async def test_a_slow_reader_gets_everything_while_others_go_on(client: Client, rp: str) -> None:
    other = (await client.rps.create(name=fresh_name(), lease_s=600)).name
    total = 3 * herald.subscription.QUEUE_EVENTS_MAX
    await client.rps.update(rp, {"history": {"max_events": total}})
    async with client.subscribe(rp) as slow, client.subscribe(other) as quick:
        for start in range(0, total, 100):
            await client.submit(rp, list(range(start, start + 100)))
        await client.flush()
        await client.publish(other, "here")
        assert data(await take(quick, 1)) == ["here"]
        assert data(await take(slow, total)) == list(range(total))


async def test_history_that_is_gone_is_a_gap(client: Client) -> None:
    rp = (await client.rps.create(name=fresh_name(), history={"max_events": 5})).name
    async with client.subscribe(rp) as subscription:
        beginning = subscription.cursor
    assert beginning is not None
    for number in range(1, 21):
        await client.publish(rp, number)
    async with client.subscribe(rp, from_=beginning) as subscription:
        gap, first = await take(subscription, 2)
    assert isinstance(gap, Gap)
    assert gap.start == 1
    assert isinstance(first, Received)
    assert first.offset == gap.end + 1


async def test_a_deleted_rendezvous_point_ends_its_subscription_only(client: Client, rp: str) -> None:
    doomed = (await client.rps.create(name=fresh_name())).name
    async with client.subscribe(doomed) as ending, client.subscribe(rp) as staying:
        await client.rps.delete(doomed)
        with pytest.raises(Problem) as caught:
            await take(ending, 1)
        assert caught.value.code in ("not-found", "gone")
        await client.publish(rp, 1)
        assert data(await take(staying, 1)) == [1]


async def test_what_does_not_exist_is_refused(client: Client) -> None:
    for attempt in (client.subscribe("/localhost/nothing/"), client.publish("/localhost/nothing/", 1)):
        with pytest.raises(Problem) as caught:
            await attempt
        assert caught.value.code == "not-found"


async def test_a_wrong_token_is_refused_and_an_expired_one_ends_the_connection(domain: Domain, rp: str) -> None:
    async with Client(domain.url, token="wrong") as client:
        with pytest.raises(Problem) as caught:
            await client.subscribe(rp)
        assert caught.value.code == "unauthenticated"
    async with Client(domain.url, token=domain.token(subject="short", lease_s=6)) as client:
        subscription = await client.subscribe(rp)
        with pytest.raises(Closed) as closed:
            await take(subscription, 1)
        assert closed.value.code == 4100


async def test_a_source_of_tokens_outlives_each_token(domain: Domain, rp: str) -> None:
    asked = 0
    asked_again = asyncio.Event()

    async def token() -> str:
        nonlocal asked
        asked += 1
        if asked == 2:
            asked_again.set()
        return domain.token(lease_s=3 if asked == 1 else 600)

    async with Client(domain.url, token=token) as client, client.subscribe(rp) as subscription:
        async with asyncio.timeout(WAIT_S):
            await asked_again.wait()
        await client.publish(rp, 1)
        assert data(await take(subscription, 1)) == [1]


# ---- durable subscriptions ----


async def test_a_durable_subscription_waits_for_its_reader(client: Client, rp: str) -> None:
    durable = await client.subscriptions.create(rp, lease_s=60)
    for number in (1, 2, 3):
        await client.publish(rp, number)
    pulled = await client.subscriptions.pull(durable.id, limit=2)
    assert ([event["data"] for event in pulled.events], pulled.offset, pulled.recovered) == ([1, 2], 2, True)
    assert (await client.subscriptions.pull(durable.id, limit=1)).events == pulled.events[:1]
    await client.subscriptions.ack(durable.id, pulled.cursor)
    async with client.attach(durable.id) as attached:
        assert data(await take(attached, 1)) == [3]
    assert (await client.subscriptions.pull(durable.id)).events == []
    assert (await client.subscriptions.get(durable.id)).document["cursor"].endswith(":3")
    await client.subscriptions.delete(durable.id)
    with pytest.raises(Problem):
        await client.attach(durable.id)


async def test_a_pull_waits_for_the_next_event(client: Client, rp: str) -> None:
    durable = await client.subscriptions.create(rp, lease_s=60)
    pulling = asyncio.ensure_future(client.subscriptions.pull(durable.id, wait_s=20))
    await asyncio.sleep(0.2)  # nothing is published, and it is not answered
    assert not pulling.done()
    await client.publish(rp, "now")
    async with asyncio.timeout(WAIT_S):
        assert [event["data"] for event in (await pulling).events] == ["now"]


async def test_an_attached_subscription_outlives_its_lease(client: Client, rp: str) -> None:
    durable = await client.subscriptions.create(rp, lease_s=10)
    async with client.attach(durable.id) as attached:
        until = time.monotonic() + 12
        while time.monotonic() < until:
            await client.publish(rp, 1)
            await take(attached, 1)
            await asyncio.sleep(0.5)  # the reader's pace


async def test_acknowledging_by_hand_moves_only_as_far_as_said(client: Client, rp: str) -> None:
    durable = await client.subscriptions.create(rp, lease_s=60)
    for number in (1, 2, 3):
        await client.publish(rp, number)
    async with client.attach(durable.id, auto_ack=False) as attached:
        first, _, _ = await take(attached, 3)
        await attached.ack(first)
    async with client.attach(durable.id) as attached:
        assert data(await take(attached, 2)) == [2, 3]


# ---- without asyncio ----


def test_the_sync_client_does_the_same(domain: Domain, tmp_path: Path) -> None:
    with SyncClient(domain.url, token=domain.token(admin=True)) as client:
        rp = client.rps.create(name=fresh_name(), lease_s=60)
        with client.subscribe(rp.id, state=tmp_path / "state") as subscription:
            client.publish(rp.name, {"n": 1})
            item = next(subscription)
            assert isinstance(item, Received)
            assert item.data == {"n": 1}
        assert rp.id in [found.id for found in client.rps.list()]
        client.rps.delete(rp.id)


# ---- faults ----


@pytest.mark.timeout(600)
@pytest.mark.parametrize("fault", ["kill gateway", "kill redis", "restart"])
async def test_every_confirmed_event_is_received_exactly_once_whatever_dies(domain: Domain, fault: str) -> None:
    total, at_once = 6000, 20
    async with Client(domain.url, token=domain.token(admin=True)) as client:
        rp = (await client.rps.create(name=fresh_name(), lease_s=600, history={"max_events": total})).name
        subscription = await client.subscribe(rp)
        confirmed: list[asyncio.Future[Any]] = []

        async def publish() -> None:
            for start in range(0, total, at_once):
                confirmed.append(await client.submit(rp, list(range(start, start + at_once))))
                await asyncio.sleep(0.005)  # the publisher's pace

        publishing = asyncio.ensure_future(publish())
        received = data(await take(subscription, total // 4))
        await (_restarted(domain) if fault == "restart" else asyncio.to_thread(_killed, domain, fault.split()[1]))
        async with asyncio.timeout(90):
            await publishing
            await client.flush()
        offsets = [one.offset for future in confirmed for one in future.result()]
        assert sorted(offsets) == list(range(1, total + 1))
        received += data(await take(subscription, total - len(received)))
        # What Herald refuses for the moment, since Redis stays away for too long, is stored behind later submissions.
        by_offset = sorted(range(total), key=offsets.__getitem__)
        assert received == by_offset
        assert fault == "kill redis" or received == list(range(total))
        assert subscription.cursor is not None
        assert subscription.cursor.endswith(f":{total}")


def _killed(domain: Domain, name: str) -> None:
    domain.wait_replaced(name, domain.kill(name))
    wait_for(domain.is_ready, about="the domain is ready again")


async def _restarted(domain: Domain) -> None:
    await asyncio.to_thread(domain.stop)
    domain.spawn()  # not in a thread that ends with this test: the domain would end with it
    await asyncio.to_thread(domain.wait_up)


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_a_reader_that_was_away_during_a_restart_misses_nothing(domain: Domain, tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with Client(domain.url, token=domain.token(admin=True)) as client:
        rp = (await client.rps.create(name=fresh_name(), lease_s=600)).name
        async with client.subscribe(rp, state=state) as subscription:
            await client.publish(rp, 1)
            assert data(await take(subscription, 1)) == [1]
        await client.publish(rp, 2)
        await _restarted(domain)
        await client.publish(rp, 3)
        async with client.subscribe(rp, state=state) as subscription:
            assert data(await take(subscription, 2)) == [2, 3]


# ---- the command ----


def environment(domain: Domain, token: str | None = None) -> dict[str, str]:
    """That of a shell at the domain, with an administrator's token unless another is given."""
    shown = domain.token(admin=True) if token is None else token
    return {**domain.env, "HERALD_URL": domain.url, "HERALD_TOKEN": shown, "HERALD_HOME": str(ROOT)}


def command(domain: Domain, *arguments: str, input: str | None = None, code: int = 0, token: str | None = None) -> str:
    """What `herald ARGUMENTS` prints; it must end with `code`. In this process: a start takes longer than most commands."""
    done = CliRunner().invoke(cli, arguments, env=environment(domain, token), input=input)
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


def program(domain: Domain, *arguments: str) -> str:
    """As `command`, in a process of its own."""
    start = [sys.executable, "-c", "from herald.commands import main; main()"]
    done = subprocess.run(
        [*start, *arguments], env=environment(domain), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_tour_of_the_command(domain: Domain, tmp_path: Path) -> None:
    name = fresh_name()
    assert f"created {name}" in command(domain, "rp", "create", name, "--lease-s", "600", "--max-events", "100")
    assert name in command(domain, "rp", "list")
    assert json.loads(command(domain, "rp", "show", name, "--json"))["history"]["max_events"] == 100
    assert "offset 1" in command(domain, "pub", name, '{"celsius": 21.5}')
    command(domain, "pub", name, "--lines", input="a\nb\n")
    sub = ["sub", name, "--from", "earliest", "--state", str(tmp_path / "state"), "--data-only"]
    assert command(domain, *sub, "--count", "2") == '{"celsius":21.5}\na\n'
    assert command(domain, *sub, "--count", "1") == "b\n"
    assert "A title" in command(domain, "rp", "update", name, "--title", "A title")
    assert "700 s" in command(domain, "rp", "renew", name, "--lease-s", "700")
    command(domain, "rp", "delete", name)
    assert "herald rp list" in command(domain, "pub", name, "x", code=1)
    assert "export HERALD_TOKEN" in command(domain, "pub", name, "x", code=1, token="")


def test_a_token_from_the_command_is_only_the_token_and_works(domain: Domain) -> None:
    token = program(domain, "token", "create", "--admin", "--lease-s", "60")
    assert token.count("\n") == 1
    assert command(domain, "rp", "list", token=token.strip()) is not None
    narrowed = program(domain, "token", "create", "--subject", "roof", "--ops", "publish").strip()
    name = fresh_name()
    command(domain, "rp", "create", name)
    command(domain, "pub", name, "x", token=narrowed)
    command(domain, "sub", name, "--count", "1", token=narrowed, code=1)


def test_a_pattern_stands_for_all_names_below(domain: Domain) -> None:
    tree = fresh_name().removeprefix("/localhost/").rstrip("/")
    assert "no rendezvous point under" in command(domain, "sub", f"{tree}/*", code=2)
    for leaf in ("a", "b/c"):
        command(domain, "rp", "create", f"{tree}/{leaf}")
        command(domain, "pub", f"{tree}/{leaf}", leaf)
    read = command(domain, "sub", f"{tree}/*", "--from", "earliest", "--count", "2", "--data-only")
    assert sorted(read.split()) == ["a", "b/c"]
    assert "one rendezvous point" in command(domain, "sub", f"{tree}/*", "--from", "abcdefgh:1", code=2)


def test_a_durable_subscription_from_the_command(domain: Domain) -> None:
    name = fresh_name()
    command(domain, "rp", "create", name)
    id = json.loads(command(domain, "sub-durable", "create", name, "--lease-s", "60", "--json"))["id"]
    command(domain, "pub", name, "--lines", input="1\n2\n3\n")
    assert command(domain, "sub-durable", "pull", id, "--limit", "1", "--data-only", "--ack") == "1\n"
    assert command(domain, "sub-durable", "attach", id, "--count", "2", "--data-only") == "2\n3\n"
    command(domain, "sub-durable", "delete", id)


def test_monitor_publishes_samples_with_units_in_their_names(domain: Domain) -> None:
    host = f"h{uuid.uuid4().hex[:8]}"
    command(domain, "monitor", "--name", host, "--interval-s", "0.1", "--count", "3")
    for kind, member in (
        ("cpu", "used_percent"),
        ("memory", "available_bytes"),
        ("disk", "used_bytes"),
        ("network", "received_bytes_per_s"),
    ):
        rp = f"/localhost/hosts/{host}/{kind}/"
        assert json.loads(command(domain, "rp", "show", rp, "--json"))["offset"] == 3
        sample = json.loads(command(domain, "sub", rp, "--from", "last", "--count", "1", "--data-only"))
        assert sample[member] >= 0


def test_replay_publishes_each_row_once_in_the_order_of_time(domain: Domain, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    prefix = f"client/{uuid.uuid4().hex[:8]}"
    path.write_text(
        "at,place,n\n2026-01-01T00:00:03Z,b,4\n2026-01-01T00:00:01Z,a,1\n2026-01-01T00:00:02Z,a,2\n,a,9\n"
        "2026-01-01T00:00:02Z,b,3\n2026-01-01T00:00:02Z,,9\n"
    )
    replay = [
        "replay",
        str(path),
        "--rp-column",
        "place",
        "--name-prefix",
        prefix,
        "--time-column",
        "at",
        "--speed",
        "100",
    ]
    assert "add --sort" in command(domain, *replay, code=2)
    counts = json.loads(command(domain, *replay, "--sort", "--json"))
    assert counts["published"] == 4
    assert (counts["rows_without_time"], counts["rows_without_name"], counts["rendezvous_points"]) == (1, 1, 2)
    read = command(domain, "sub", f"/localhost/{prefix}/b/", "--from", "earliest", "--count", "3", "--json")
    events = [json.loads(line)["event"] for line in read.splitlines()]
    assert [event["data"]["n"] for event in events] == [4, 3, 4]  # the run that was refused had published its first row
    assert events[1]["time"] == "2026-01-01T00:00:02.000Z"


async def test_reading_begins_at_a_time_in_every_way_of_the_client(client: Client, rp: str, domain: Domain) -> None:
    """Between the events lies a time by the domain's clock, which is this machine's."""
    await client.publish(rp, 1)
    between = datetime.now(UTC) + timedelta(milliseconds=1)
    later = between + timedelta(milliseconds=1)  # stored times are whole milliseconds
    await asyncio.to_thread(wait_for, lambda: datetime.now(UTC) > later, about="a later millisecond")
    await client.publish(rp, 2)
    assert data(await take(client.subscribe(rp, from_=between), 1)) == [2]
    durable = await client.subscriptions.create(rp, lease_s=60, from_=between)
    pulled = await client.subscriptions.pull(durable.id)
    assert [event["data"] for event in pulled.events] == [2]
    shown = await asyncio.to_thread(
        program, domain, "sub", rp, "--since", between.isoformat(), "--count", "1", "--data-only"
    )
    assert shown == "2\n"
    whole = await asyncio.to_thread(program, domain, "sub", rp, "--since", "1h", "--count", "2", "--data-only")
    assert whole == "1\n2\n"


def test_info_and_top_show_what_happens(domain: Domain) -> None:
    name = fresh_name()
    command(domain, "rp", "create", name, "--max-events", "10")
    command(domain, "sub-durable", "create", name, "--lease-s", "60", "--from", "earliest")
    command(domain, "pub", name, "--lines", input="x\n" * 1020)
    said = command(domain, "rp", "info", name)
    assert f"name      {name}\n" in said
    assert re.search(r"\nhistory   \d+ events, .*, offsets [\d,]+ to 1,020\n", said), said
    assert re.search(r"\nin        [\d.,]+ events/s, ", said)
    assert re.search(r"\n {10}sub_\w+  1,020 behind, [\d,]+ of them lost", said), said
    document = json.loads(command(domain, "rp", "info", name, "--json"))
    assert document["history"]["next"] == 1021
    assert document["per_s"].keys() == {"events_in", "bytes_in", "deliveries", "bytes_out"}

    pictures = [json.loads(line) for line in command(domain, "top", "--count", "2", "--json").splitlines()]
    assert [picture["domain"] for picture in pictures] == ["localhost", "localhost"]
    assert pictures[1]["gateways"]
    assert pictures[1]["counts"]["rps"] >= 1
    said = command(domain, "top", "--count", "1")
    assert said.startswith("localhost: ")
    assert "GATEWAY" in said
    assert "\x1b" not in said, "in a pipe nothing is overwritten"


def test_bench_measures_what_is_published_and_read(domain: Domain) -> None:
    name = fresh_name()
    command(domain, "rp", "create", name)
    start = [sys.executable, "-c", "from herald.commands import main; main()"]
    reader = [*start, "bench", "sub", name, "--count", "20", "--json"]
    with subprocess.Popen(
        reader, env=environment(domain), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("reading ")
        published = json.loads(
            command(domain, "bench", "pub", name, "--seconds", "0.5", "--rate", "200", "--batch", "10", "--json")
        )
        read, _ = process.communicate(timeout=WAIT_S)
    assert published["events"] >= 20
    assert published["events"] == json.loads(command(domain, "rp", "show", name, "--json"))["offset"]
    assert published["events_per_s"] <= 250
    assert 0 < published["confirmed_ms"]["p50"] <= published["confirmed_ms"]["max"]
    found = json.loads(read)
    assert (found["events"], found["lost"]) == (20, 0)
    assert found["arrived_ms"] is not None
    assert "herald rp list" in command(domain, "bench", "pub", fresh_name(), "--seconds", "5", code=1)


@pytest.mark.long
def test_doctor_passes_on_what_the_server_says(domain: Domain) -> None:
    assert json.loads(program(domain, "doctor", "--json"))["healthy"] is True
    first = program(domain, "doctor").splitlines()[2]
    assert first.split()[0] in ("warn", "ok"), "what is wrong comes first; settings are for --settings"
    assert "HERALD_PORT" in program(domain, "doctor", "--settings")
    assert json.loads(program(domain, "doctor", "--remote", "--json"))["healthy"] is True


def test_interrupted_reading_goes_on_from_the_printed_cursor(domain: Domain) -> None:
    name = fresh_name()
    command(domain, "rp", "create", name)
    command(domain, "pub", name, "--lines", input="1\n2\n")
    once: Callable[..., str] = lambda *more: command(domain, "sub", name, "--data-only", *more)  # noqa: E731
    place = json.loads(command(domain, "sub", name, "--from", "earliest", "--count", "1", "--json"))["cursor"]
    assert once("--from", place, "--count", "1") == "2\n"
