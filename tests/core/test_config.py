"""Settings: read from HERALD_* only, each checked, and a bad one refused with a sentence that names it."""

import contextlib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.core.config import Config, unknown_setting, unknown_settings
from eventing.core.errors import ConfigError


def test_nothing_set_gives_a_domain_on_this_machine() -> None:
    config = Config.from_env({})
    assert (config.domain, config.host, config.port, config.data_dir) == ("localhost", "127.0.0.1", 8000, "var")
    assert config == Config()


def test_empty_setting_counts_as_not_set() -> None:
    assert Config.from_env({"HERALD_PORT": "", "HERALD_DOMAIN": ""}) == Config()


def test_settings_are_typed() -> None:
    config = Config.from_env({"HERALD_PORT": "9000", "HERALD_DOMAIN": "example.org", "HERALD_DEV": "yes", "OTHER": "x"})
    assert (config.port, config.domain, config.dev) == (9000, "example.org", True)


@pytest.mark.parametrize("text", ["1", "true", "YES", "on"])
def test_switch_is_on(text: str) -> None:
    assert Config.from_env({"HERALD_DEV": text}).dev


@pytest.mark.parametrize("text", ["0", "false", "No", "off"])
def test_switch_is_off(text: str) -> None:
    assert not Config.from_env({"HERALD_DEV": text}).dev


@pytest.mark.parametrize(
    ("env", "named"),
    [
        ({"HERALD_PORT": "http"}, "HERALD_PORT"),
        ({"HERALD_PORT": "0"}, "HERALD_PORT is 0; it must be from 1 to 65535"),
        ({"HERALD_PORT": "65536"}, "HERALD_PORT"),
        ({"HERALD_GATEWAYS": "0"}, "HERALD_GATEWAYS"),
        ({"HERALD_RPS_MAX": "0"}, "HERALD_RPS_MAX is 0; it must be at least 1"),
        ({"HERALD_EVENT_BYTES_MAX": "1.5"}, "HERALD_EVENT_BYTES_MAX"),
        ({"HERALD_DEV": "maybe"}, "HERALD_DEV"),
        ({"HERALD_DOMAIN": "Example.org"}, "HERALD_DOMAIN"),
        ({"HERALD_DOMAIN": "a/b"}, "HERALD_DOMAIN"),
        ({"HERALD_DOMAIN": "-a"}, "HERALD_DOMAIN"),
        ({"HERALD_LOG_LEVEL": "loud"}, "HERALD_LOG_LEVEL"),
        ({"HERALD_OVERLAY": "everybody"}, "HERALD_OVERLAY"),
        ({"HERALD_PROFILE": "tiny"}, "HERALD_PROFILE is 'tiny'; use auto, small or standard"),
        ({"HERALD_ZONE": "Mars 1"}, "HERALD_ZONE"),
        ({"HERALD_OPERATOR": "Example Ltd"}, "HERALD_OPERATOR"),
        ({"HERALD_CAPACITY": "4"}, "HERALD_CAPACITY"),
        ({"HERALD_SECRET_KEY": "short"}, "HERALD_SECRET_KEY"),
        ({"HERALD_EVENT_BYTES_MAX": "5000000"}, "HERALD_BATCH_BYTES_MAX"),
        ({"HERALD_LEASE_S_MAX": "60"}, "HERALD_LEASE_S_DEFAULT"),
        ({"HERALD_MIGRATE": "later"}, "HERALD_MIGRATE"),
        ({"HERALD_ACK_DEFAULT": "replicated:17"}, "HERALD_ACK_DEFAULT"),
        ({"HERALD_DATABASE_URL": "mysql://h/x"}, "HERALD_DATABASE_URL"),
        (
            {"HERALD_DATABASE_URL": "postgres://h/x", "HERALD_MIGRATION_DATABASE_URL": "h/x"},
            "HERALD_MIGRATION_DATABASE_URL",
        ),
        ({"HERALD_MIGRATION_DATABASE_URL": "postgres://h/x"}, "HERALD_MIGRATION_DATABASE_URL has no effect"),
        ({"HERALD_DATABASE_CONNECTIONS": "1"}, "HERALD_DATABASE_CONNECTIONS"),
        ({"HERALD_BROKER_URL": "redis+cluster://h:1"}, "HERALD_BROKER_URL names a Redis Cluster"),
        ({"HERALD_BROKER_URL": "redis://a:1,b:2/0"}, "HERALD_BROKER_URL has to name one server"),
        ({"HERALD_BROKER_URL": "sentinel://a:26379"}, "HERALD_BROKER_URL cannot be read"),
        ({"HERALD_SMTP_HOST": "mail.example.org"}, "HERALD_SMTP_HOST needs HERALD_MAIL_FROM"),
        ({"HERALD_SMTP_SECURITY": "ssl"}, "HERALD_SMTP_SECURITY"),
        ({"HERALD_SMTP_USER": "herald"}, "HERALD_SMTP_USER and HERALD_SMTP_PASSWORD"),
        ({"HERALD_BROKER_URL": "kafka://a"}, "HERALD_BROKER_URL is no address"),
    ],
)
def test_bad_setting_is_refused_by_name(env: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        Config.from_env(env)


def test_weak_secret_is_not_repeated_in_the_error() -> None:
    with pytest.raises(ConfigError) as caught:
        Config.from_env({"HERALD_SECRET_KEY": "hunter2"})
    assert "hunter2" not in str(caught.value)


@given(st.dictionaries(st.sampled_from([f"HERALD_{field.name.upper()}" for field in fields(Config)]), st.text()))
def test_arbitrary_environment_is_read_or_refused(env: dict[str, str]) -> None:
    with contextlib.suppress(ConfigError):
        assert 1 <= Config.from_env(env).port <= 65535


def test_every_setting_says_what_it_is_and_its_default_is_within_its_bounds() -> None:
    for field in fields(Config):
        assert field.metadata["unit"]
        assert field.metadata["about"].endswith(".")
        for bound, sign in ((field.metadata["low"], 1), (field.metadata["high"], -1)):
            default: Any = field.default
            assert bound is None or default * sign >= bound * sign
    assert {field.name for field in fields(Config) if field.metadata["secret"]} == {
        "redis_url",
        "database_url",
        "migration_database_url",
        "broker_url",
        "secret_key",
        "oidc_client_secret",
        "otlp_url",
        "metrics_token",
        "push_proxy",
        "smtp_password",
    }


def test_misspelled_settings_are_found_and_the_clients_are_not() -> None:
    env = {"HERALD_PROT": "1", "HERALD_PORT": "1", "HERALD_TOKEN": "x", "HERALD_URL": "x", "PATH": "/"}
    assert unknown_settings(env) == ["HERALD_PROT"]
    assert (
        unknown_setting("HERALD_PROT")
        == "HERALD_PROT is no setting of Herald and has no effect. Did you mean HERALD_PORT?"
    )


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("HERALD_SESIONS_MAX", "HERALD_SESSIONS_MAX"),
        ("HERALD_DATADIR", "HERALD_DATA_DIR"),
        ("HERALD_LEASE_MAX_S", "HERALD_LEASE_S_MAX"),
        ("HERALD_REDISURL", "HERALD_REDIS_URL"),
        ("HERALD_Port", None),
        ("HERALD_SOMETHING_ELSE_ALTOGETHER", None),
    ],
)
def test_the_setting_that_is_nearest_is_named(name: str, meant: str | None) -> None:
    said = unknown_setting(name)
    assert said.startswith(f"{name} is no setting")
    assert said.endswith("has no effect." if meant is None else f"Did you mean {meant}?")


@pytest.mark.parametrize(
    ("env", "url"),
    [
        ({}, "http://127.0.0.1:8000"),
        ({"HERALD_HOST": "0.0.0.0", "HERALD_PORT": "81"}, "http://127.0.0.1:81"),
        ({"HERALD_HOST": "::1"}, "http://[::1]:8000"),
        ({"HERALD_PUBLIC_URL": "https://herald.example.org/"}, "https://herald.example.org"),
    ],
)
def test_clients_are_told_how_to_reach_the_domain(env: dict[str, str], url: str) -> None:
    assert Config.from_env(env).base_url == url


def test_embedded_redis_is_used_unless_a_url_is_given(tmp_path: Path) -> None:
    embedded = Config.from_env({"HERALD_DATA_DIR": str(tmp_path)})
    assert embedded.effective_redis_url == f"unix://{tmp_path}/redis.sock"
    assert Config.from_env({"HERALD_REDIS_URL": "redis://db:6379/1"}).effective_redis_url == "redis://db:6379/1"
