"""Every check of doctor, in the order of reading: one after the other for a command, or bounded in time for a page."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Lock

from django.db import DatabaseError, connections

from eventing.access.selectors.keys import signing_key, verification_keys
from eventing.conf import config
from eventing.core.config import Config
from eventing.core.container import per_process
from eventing.core.data_plane import SINGLE, data_plane_address
from eventing.peering.models import Peer
from eventing.peering.rules.domain_documents import fingerprint_shown
from eventing.peering.selectors.domain_documents import own_keys
from eventing.peering.selectors.peers import peers_all
from portal.bundle import FOLDER, HOW_TO_BUILD, NOT_BUILT, manifest
from portal.installation import lock_lines, run_command, server_command
from portal.security import is_exposed, weaknesses
from portal.supervisor.diagnosis import machine, stores
from portal.supervisor.diagnosis.backups import backup_finding
from portal.supervisor.diagnosis.data_plane import data_plane_findings
from portal.supervisor.diagnosis.findings import DiagnosisFinding, fail, ok, warn
from portal.supervisor.diagnosis.object_stores import object_store_findings

NAMED_MAX = 5  # peers named in one finding
logger = logging.getLogger(__name__)


def console_finding() -> DiagnosisFinding:
    """Check that scripts and styles of the pages are built."""
    missing = [name for name in manifest().values() if not (FOLDER / name).is_file()]
    if missing or not manifest():
        return warn("console", NOT_BUILT, f"{HOW_TO_BUILD}.")
    return ok("console", "its scripts and styles are built")


def security_findings(config: Config) -> list[DiagnosisFinding]:
    """Return each weakness: a failure where it would refuse the start, else a warning."""
    exposed = is_exposed(config)
    found = [
        (fail if weakness.grave and exposed else warn)(weakness.subject, weakness.says, weakness.do)
        for weakness in weaknesses(config)
    ]
    reach = "other machines can reach this domain" if exposed else "only this machine can reach this domain"
    return found or [ok("security", f"{reach}; no weak secrets, no readable private files")]


def _redis_findings(config: Config) -> list[DiagnosisFinding]:
    """Check the data plane: one server, or several."""
    several = data_plane_address(config.redis_url).kind != SINGLE
    return data_plane_findings(config) if several else stores.redis_findings(config)


def key_finding() -> DiagnosisFinding:
    """Check that the domain can sign tokens."""
    try:
        signing, verifying = signing_key(), verification_keys()
    except DatabaseError:  # no table yet, or no database: the finding about the database states which
        return ok("keys", f"none yet ({run_command()} creates the first key)")
    if signing is not None:
        return ok("keys", f"{signing['kid']} signs; {len(verifying)} verify")
    if verifying:
        return fail(
            "keys", "No signing key is valid now, so no token can be issued.", f"{run_command()} creates a new key."
        )
    return warn("keys", "The domain has no key yet.", f"{run_command()} creates the first key.")


def peer_findings() -> list[DiagnosisFinding]:
    """Check peers: the domain's fingerprint, the number of peers, pending requests, and peers that could not be
    notified."""
    try:
        keys, peers = own_keys(), peers_all()
    except DatabaseError:  # the finding about the database states the reason
        return []
    found = [ok("fingerprint", fingerprint_shown(keys[0]["kid"]))] if keys else []
    active = sum(peer.active for peer in peers)
    found.append(ok("peers", f"{active} active of {len(peers)}" if peers else "none (herald peer add URL)"))
    asking = [peer for peer in peers if peer.state == "asked"]
    if asking:
        found.append(
            warn(
                "peers",
                f"{_named(asking)} requested to become a peer.",
                "Run herald peer show NAME, then approve or remove the peer.",
            )
        )
    missed = [peer for peer in peers if peer.hello_problem]
    if missed:
        found.append(
            warn(
                "peers",
                f"{_named(missed)} could not be notified of changes here.",
                "Run herald peer show NAME for the reason.",
            )
        )
    return found


def _named(peers: list[Peer]) -> str:
    names = ", ".join(peer.name for peer in peers[:NAMED_MAX])
    return names if len(peers) <= NAMED_MAX else f"{names} and {len(peers) - NAMED_MAX} more"


CHECKS: tuple[tuple[str, Callable[[], list[DiagnosisFinding]]], ...] = (
    ("settings", lambda: machine.settings_findings(os.environ)),
    ("profile", lambda: [machine.profile_finding(config(), os.environ)]),
    ("python", lambda: machine.python_findings(lock_lines())),
    ("data folder", lambda: [machine.data_folder_finding(config())]),
    ("security", lambda: security_findings(config())),
    ("redis", lambda: _redis_findings(config())),
    ("broker", lambda: stores.broker_findings(config())),
    ("database", lambda: [stores.database_finding(config())]),
    ("backup", lambda: [backup_finding(config())]),
    ("keys", lambda: [key_finding()]),
    ("peers", peer_findings),
    ("console", lambda: [console_finding()]),
    ("gateway", lambda: [machine.gateway_finding(config())]),
    ("object store", lambda: object_store_findings(config())),
    ("reports", lambda: [machine.reports_finding(config())]),
    ("open files", lambda: [machine.file_limit_finding(config())]),
    ("clock", lambda: [machine.clock_finding()]),
)
"""Name and check; none changes anything."""

THREADS = 4
"""Of their own, so that a check that hangs takes none from requests."""


class _Looks:
    """Checks under way on threads of their own, held under `lock`."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.threads = ThreadPoolExecutor(THREADS, thread_name_prefix="diagnosis")
        self.under_way: dict[str, Future[list[DiagnosisFinding]]] = {}


_looks = per_process(_Looks)


def all_findings() -> list[DiagnosisFinding]:
    """Every check, in the order of reading."""
    return [finding for _, check in CHECKS for finding in check()]


def findings_within(seconds: float) -> list[DiagnosisFinding]:
    """Run the checks within `seconds`: a check without a result by then is a finding of its own.

    A check that hangs is not begun a second time, and who asks meanwhile is given the same look: however many look at
    the page, each check runs once at a time.
    """
    looks = _looks()
    with looks.lock:
        for name, check in CHECKS:
            if name not in looks.under_way:
                looks.under_way[name] = looks.threads.submit(_checked, name, check)
        asked = dict(looks.under_way)
    wait(asked.values(), timeout=seconds)
    found: list[DiagnosisFinding] = []
    for name, _ in CHECKS:
        if asked[name].done():
            found += asked[name].result()
        else:
            found.append(
                warn(
                    name,
                    f"No result within {seconds:g} s.",
                    f"Check again; {server_command()} doctor waits for the result.",
                )
            )
    with looks.lock:
        for name, look in asked.items():
            if look.done() and looks.under_way.get(name) is look:
                del looks.under_way[name]
    return found


def _checked(name: str, check: Callable[[], list[DiagnosisFinding]]) -> list[DiagnosisFinding]:
    try:
        return check()
    except Exception:
        logger.exception("The check %s failed", name)
        return [fail(name, "The check failed with an error.", "See the gateway's log for the reason.")]
    finally:
        connections.close_all()  # this thread's: it may not be asked again for long
