"""Checks of a data plane of several servers: each primary answers, is what its address states, and promises the same."""

from __future__ import annotations

from eventing.core.config import Config
from eventing.core.data_plane import CLUSTER, SENTINEL, data_plane_address
from eventing.store.connection import durability, weakest
from eventing.store.errors import AuthenticationError, RedisError
from eventing.store.inspection import Inspection, primaries_inspected
from portal.supervisor import redis_server
from portal.supervisor.diagnosis.findings import DiagnosisFinding, fail, ok, warn
from portal.supervisor.diagnosis.settings_table import masked_url
from portal.supervisor.diagnosis.stores import acknowledgements, memory_findings, persistence_finding


def data_plane_findings(config: Config) -> list[DiagnosisFinding]:
    """Check the primaries of HERALD_REDIS_URL, and what all of them provide."""
    where, kind = masked_url(config.redis_url), data_plane_address(config.redis_url).kind
    try:
        primaries = primaries_inspected(config.redis_url)
    except AuthenticationError as error:
        return [fail("redis", f"{where} refuses the password: {error}.", "Correct HERALD_REDIS_URL.")]
    except (RedisError, OSError) as error:
        asked = {CLUSTER: "node of the cluster", SENTINEL: "Sentinel"}.get(kind, "shard")
        return [fail("redis", f"No {asked} at {where} answers: {error}.", "Start them, or correct HERALD_REDIS_URL.")]
    silent = [name for name, inspection in primaries if inspection is None]
    up: dict[str, Inspection] = {name: inspection for name, inspection in primaries if inspection is not None}
    findings = []
    if silent:
        findings.append(
            fail(
                "redis",
                f"{', '.join(silent)} of {len(primaries)} primaries does not answer; its rendezvous points are unavailable.",
                "Start it, or have a replica promoted.",
            )
        )
    if not up:
        return findings
    infos = [one.info for one in up.values()]
    if (sentence := redis_server.server_mismatch(kind, infos)) is not None:
        return [*findings, fail("redis", sentence, "Update the servers, or correct HERALD_REDIS_URL.")]
    used = ", ".join(f"{name} {int(one.info['used_memory']) / 1024**2:.0f} MiB" for name, one in up.items())
    version = redis_server.server_version(infos[0])
    findings.append(ok("redis", f"{version}, {kind} of {len(primaries)} primaries ({used})"))
    found = weakest([durability(one.info, one.append) for one in up.values()])
    if found.replicas == 0 and kind in (CLUSTER, SENTINEL):
        findings.append(
            warn("redis replicas", "A primary has no replica, so nothing takes its place when it dies.", "Attach one.")
        )
    for one in up.values():
        unlike = durability(one.info, one.append)
        if (unlike.always, unlike.waitaof) == (found.always, found.waitaof):
            findings += [persistence_finding(one.info, one.append, unlike), *memory_findings(one.info)]
            break
    return [*findings, *acknowledgements(found)]
