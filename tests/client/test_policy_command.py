"""`herald policy explain` against a real domain: what it prints for people and programs, and what it refuses to take."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result
from herald.commands import cli
from herald.commands.policy import INPUT_CHARS_MAX

from demo.harness.servers import Domain

ID = "https://id.example.org"
POLICY = [
    {"issuer": ID, "claims": {"age": {"range": {"min": 18}}}, "allow": ["subscribe"]},
    {"issuer": "domain", "claims": {"sub": {"prefix": "team-"}}, "allow": ["publish"]},
]
NOWHERE = "http://127.0.0.1:1"


def herald(*arguments: str, input: str | None = None, **env: str) -> Result:
    clean = {name: None for name in os.environ if name.startswith("HERALD_")}
    return CliRunner().invoke(cli, arguments, input=input, env={**clean, **env})


@pytest.fixture(scope="module")
def token_of(domain: Domain) -> Iterator[Callable[[str], str]]:
    """Tokens for subjects, by an administrator's."""
    with domain.http(admin=True) as administrator:

        def token(subject: str) -> str:
            return str(administrator.post("/api/v1/tokens", json={"subject": subject}).json()["token"])

        yield token


@pytest.fixture(scope="module")
def asker(domain: Domain, token_of: Callable[[str], str]) -> dict[str, str]:
    """The environment of whoever created the RP."""
    return {"HERALD_URL": domain.url, "HERALD_TOKEN": token_of("policy-maker")}


@pytest.fixture(scope="module")
def rp(asker: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of an RP with the policy above."""
    path = tmp_path_factory.mktemp("policy") / "policy.json"
    path.write_text(json.dumps(POLICY))
    name = f"policy/{uuid.uuid4().hex[:12]}"
    made = herald("rp", "create", name, "--lease-s", "600", "--policy", str(path), **asker)
    assert made.exit_code == 0, made.output
    return name


@pytest.mark.processes
def test_it_says_which_rule_decided_and_why_the_others_did_not(
    token_of: Callable[[str], str], asker: dict[str, str], rp: str
) -> None:
    token = token_of("team-roof")
    told = herald("policy", "explain", token, rp, "publish", **asker)
    assert (told.exit_code, told.stderr) == (0, "")
    assert told.stdout == (
        "publish is allowed, decided by rule 2\n"
        "Rule 2 is the first that matches the bearer, and it allows publish.\n"
        f"  rule 1    no match  {ID}: The token is of this domain.\n"
        "  rule 2    matches   domain: The rule's issuer is the bearer's, and all its predicates hold.\n"
    )
    refused = herald("policy", "explain", token, rp, "history", **asker)
    assert refused.exit_code == 0  # the question was answered
    assert refused.stdout.startswith("history is refused, decided by rule 2\n")


@pytest.mark.processes
def test_token_comes_from_standard_input_and_answer_is_json(
    token_of: Callable[[str], str], asker: dict[str, str], rp: str
) -> None:
    token = token_of("eve")
    told = herald("policy", "explain", "-", rp, "publish", "--json", input=f"{token}\n", **asker)
    assert told.exit_code == 0, told.stderr
    answer = json.loads(told.stdout)
    assert (answer["allowed"], answer["decided_by"], len(answer["rules"])) == (False, "no rule", 2)
    assert token.split(".")[2] not in told.output


@pytest.mark.processes
def test_it_is_asked_with_the_token_itself_if_there_is_no_other(
    domain: Domain, token_of: Callable[[str], str], rp: str
) -> None:
    token = token_of("team-door")
    told = herald("policy", "explain", "-", rp, "publish", "--url", domain.url, input=token)
    assert told.stdout.startswith("publish is allowed, decided by rule 2\n")


@pytest.mark.processes
def test_claims_and_strangers_are_explained_too(asker: dict[str, str], rp: str) -> None:
    adult, child = ({"iss": ID, "sub": "x", "age": age} for age in (18, 17))
    told = herald("policy", "explain", json.dumps(adult), rp, "subscribe", **asker)
    assert told.stdout.startswith("subscribe is allowed, decided by rule 1\n")
    told = herald("policy", "explain", "-", rp, "subscribe", input=json.dumps(child), **asker)
    assert "Claim age is 17, not a number of at least 18." in told.stdout
    told = herald("policy", "explain", "anonymous", rp, "subscribe", **asker)
    assert "The bearer has no token." in told.stdout
    draft = json.dumps([{"issuer": "anyone", "allow": ["subscribe"]}])
    told = herald("policy", "explain", "anonymous", rp, "subscribe", "--policy", "-", input=draft, **asker)
    assert told.stdout.startswith("subscribe is allowed, decided by rule 1\n")


@pytest.mark.processes
def test_attack_claims_cannot_command_the_terminal(asker: dict[str, str], rp: str) -> None:
    claims: dict[str, Any] = {"iss": ID, "sub": "x", "age": "\x1b[2J\x9b2J\u202e"}
    told = herald("policy", "explain", json.dumps(claims), rp, "subscribe", **asker)
    assert told.exit_code == 0
    assert all(char.isprintable() or char == "\n" for char in told.stdout)


@pytest.mark.processes
def test_refusal_is_exit_code_1_and_one_line(domain: Domain, token_of: Callable[[str], str], rp: str) -> None:
    token, other = token_of("eve"), token_of("team-x")
    told = herald("policy", "explain", other, rp, "publish", "--url", domain.url, "--token", token)
    assert (told.exit_code, told.stdout, told.stderr.count("\n")) == (1, "", 1)
    assert other not in told.stderr


@pytest.mark.parametrize(
    ("arguments", "input", "says"),
    [
        (["explain", "t", "r", "fly"], None, "'fly' is not one of"),
        (["explain", "-", "r", "publish"], "", "There is no token"),
        (["explain", "", "r", "publish"], None, "There is no token"),
        (["explain", "{", "r", "publish"], None, "The claims are not JSON"),
        (["explain", "-", "r", "publish"], "x" * (INPUT_CHARS_MAX + 1), "longer than any token"),
        (["explain", "t", "r"], None, "Missing argument 'OP'"),
    ],
)
def test_wrong_use_is_exit_code_2(arguments: list[str], input: str | None, says: str) -> None:
    told = herald("policy", *arguments, "--url", NOWHERE, input=input)
    assert told.exit_code == 2
    assert says in told.stderr


def test_nobody_there_is_exit_code_3_and_it_explains_itself() -> None:
    told = herald("policy", "explain", "t", "r", "publish", "--url", NOWHERE)
    assert (told.exit_code, told.stdout, told.stderr.count("\n")) == (3, "", 1)
    usage = herald("policy", "explain", "--help")
    assert usage.exit_code == 0
    for option in ("--url", "--token", "--json", "anonymous"):
        assert option in usage.output
