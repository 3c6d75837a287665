"""The profile `auto`: small on a small machine or in a small container, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventing.core.config import SMALL_DEFAULTS, Config
from portal.machine_size import MachineSize, machine_size

GIB = 1024**3


@pytest.mark.parametrize(
    ("memory", "cores", "small"),
    [(GIB // 2, 1, True), (2 * GIB, 4, True), (16 * GIB, 1, True), (3 * GIB, 2, False), (None, None, False)],
)
def test_little_memory_or_one_core_is_small(memory: int | None, cores: int | None, small: bool) -> None:
    assert MachineSize(memory, cores).is_small is small


def test_a_containers_limits_count_where_they_are_lower(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text(f"{GIB // 4}\n")
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert machine_size(tmp_path) == MachineSize(GIB // 4, 1)
    assert machine_size(tmp_path).shown() == "0.2 GiB of memory, 1 core"


def test_limits_of_the_first_version_count_too(tmp_path: Path) -> None:
    for name, text in {"memory/memory.limit_in_bytes": str(GIB), "cpu/cpu.cfs_quota_us": "-1"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert machine_size(tmp_path).memory_bytes == GIB
    assert machine_size(tmp_path).cores == machine_size(tmp_path / "none").cores


def test_a_container_without_limits_has_the_size_of_the_machine(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert machine_size(tmp_path) == machine_size(tmp_path / "none")
    assert machine_size(tmp_path).memory_bytes


def test_auto_is_small_on_a_small_machine_only() -> None:
    assert Config.from_env({}, small_machine=True).is_small
    assert not Config.from_env({}).is_small
    assert not Config.from_env({"HERALD_PROFILE": "standard"}, small_machine=True).is_small
    assert Config.from_env({"HERALD_PROFILE": "small"}).is_small


def test_what_is_stated_holds_in_the_profile_small_too() -> None:
    config = Config.from_env({"HERALD_PROFILE": "small", "HERALD_WORKERS": "2"})
    assert config.workers == 2
    others = {name: getattr(config, name) for name in SMALL_DEFAULTS if name != "workers"}
    assert others == {name: value for name, value in SMALL_DEFAULTS.items() if name != "workers"}
