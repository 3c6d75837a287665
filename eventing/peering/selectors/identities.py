"""Identities by the federation's directory: the address and first key of a domain that no administrator compared.

A domain is identified when the directory names it and the domain document held here has the first key that the
directory names. The document is fetched from the directory's address where none is held (peering/directory_documents.py).
"""

from __future__ import annotations

from typing import NamedTuple

from eventing.core.container import per_process
from eventing.peering.ports import DirectoryRecord, directory_record
from eventing.peering.selectors.domain_documents import domain_document
from eventing.peering.selectors.recent_keys import Recent


class Identity(NamedTuple):
    """Identity of a domain by its name alone.

    Attributes:
        record: of the directory; None if it names no such domain, or there is no directory.
        verified: whether the held domain document has the first key of the record.
        contradicted: whether it has another one.
    """

    record: DirectoryRecord | None
    verified: bool
    contradicted: bool


def _read(name: str) -> Identity:
    record = directory_record(name) if directory_record.provider is not None else None
    if record is None:
        return Identity(None, False, False)
    document = domain_document(name)
    agrees = document is not None and document.fingerprint == record.fingerprint
    return Identity(record, agrees, document is not None and not agrees)


@per_process
def _recent() -> Recent[Identity]:
    return Recent(_read)


def identity(name: str) -> Identity:
    """Return the identity of a domain, at most a second old (recent_keys.py: CACHE_S)."""
    return _recent().get(name)


def identities_forget() -> None:
    """Discard this process's cached identities after a change."""
    _recent().forget()
