"""Own rows of gossip objects: signed, with versions that are used once, also after a restart without any state."""

from __future__ import annotations

import logging
from collections.abc import Callable

from eventing.conf import config
from eventing.membership.rules.records import identity_of
from eventing.membership.rules.rows import row_sign, row_verified
from eventing.membership.services.own_record import own_identity
from eventing.overlay.directory_records import DomainRecord
from eventing.overlay.gossip_object import SignedRow
from eventing.store.errors import RedisError
from eventing.store.overlay_pictures import row_version_store, row_versions_stored

log = logging.getLogger(__name__)


class RowSigner:
    """Signs rows of this domain. Versions are above all before, as far as Redis remembers them; beyond that, a run signs nothing
    in the second in which it began (running.py: `second_over`)."""

    def __init__(self) -> None:
        self._me = config().domain
        self._identity = own_identity()
        self._versions = row_versions_stored()

    def __call__(self, name: str, version: int, expires_s: int, payload: bytes) -> SignedRow:
        """Make a signed row of at least this version."""
        version = max(version, self._versions.get(name, 0) + 1)
        self._versions[name] = version
        try:
            row_version_store(name, version)
        except RedisError as error:
            log.warning("overlay: the version of a row could not be stored: %s", error)
        return row_sign(name, SignedRow(self._me, version, expires_s, payload), self._identity)


class RowVerifier:
    """Decides which rows are genuine: those that the identity key in their owner's record signed.

    Args:
        record: the newest record of a domain; None if none is held.
        identity: the identity key of a domain whose record has expired; None if unknown.
    """

    def __init__(self, record: Callable[[str], DomainRecord | None], identity: Callable[[str], str | None]) -> None:
        self._record = record
        self._identity = identity

    def __call__(self, name: str, row: SignedRow) -> bool:
        record = self._record(row.owner)
        key = identity_of(record) if record is not None else self._identity(row.owner)
        return key is not None and row_verified(name, row, key)
