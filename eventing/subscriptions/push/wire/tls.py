"""TLS settings of connections to endpoints: the certificate authorities, and a context for each client certificate."""

from __future__ import annotations

import asyncio
import os
import ssl
import tempfile
from collections import OrderedDict

from eventing.subscriptions.push.rules.client_identities import ClientIdentity
from eventing.subscriptions.push.rules.verdicts import NoAnswer
from eventing.subscriptions.push.wire.resolution import Unreached

CONTEXTS_MAX = 256  # bound: contexts of client certificates in memory; the one used longest ago is made again


class TlsContexts:
    """The contexts of one event loop.

    Args:
        ca_file: further certificate authorities as PEM; empty for those of the system only.
    """

    def __init__(self, ca_file: str = "") -> None:
        self._ca_file = ca_file
        self._plain = self._made(None)
        self._of: OrderedDict[str, ssl.SSLContext] = OrderedDict()

    async def of(self, identity: ClientIdentity | None) -> ssl.SSLContext:
        """Return the context for connections with this client certificate. Raises Unreached if OpenSSL refuses it."""
        if identity is None:
            return self._plain
        found = self._of.get(identity.digest)
        if found is None:
            try:  # authorities are read from disk: tens of milliseconds
                found = await asyncio.to_thread(self._made, identity)
            except (ssl.SSLError, OSError):
                raise Unreached(NoAnswer.TLS) from None
            self._of[identity.digest] = found
            while len(self._of) > CONTEXTS_MAX:
                self._of.popitem(last=False)
        self._of.move_to_end(identity.digest)
        return found

    def _made(self, identity: ClientIdentity | None) -> ssl.SSLContext:
        context = ssl.create_default_context()
        if self._ca_file:
            context.load_verify_locations(self._ca_file)
        if identity is not None:
            _load(context, identity)
        return context


def _load(context: ssl.SSLContext, identity: ClientIdentity) -> None:
    """Load certificate and key. Python's binding of OpenSSL reads files only: one in memory, or one that is removed at once."""
    pem = (identity.key + identity.certificate).encode()
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("client-certificate"), "wb") as file:
            file.write(pem)
            file.flush()
            context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
        return
    with tempfile.NamedTemporaryFile(prefix="herald-tls-") as file:  # readable by its owner only
        file.write(pem)
        file.flush()
        context.load_cert_chain(file.name)
