"""A Redis of the tests with a password and TLS, as operators run it."""

from __future__ import annotations

from pathlib import Path

import redis

from tests.store.cluster_process import Node

OPERATORS = "operators-s3cret"
"""Password of the user `default`, also between the servers."""


class SecuredNode(Node):
    """A server that demands a password, and TLS where it has a certificate.

    Args:
        program: path of the server.
        certificate: with its key; its own authority.
    """

    def __init__(self, folder: Path, program: str, certificate: tuple[Path, Path] | None, **options: str | int) -> None:
        self._chosen, self._certificate = program, certificate
        if certificate is not None:
            options |= files_of(certificate)
        super().__init__(folder, requirepass=OPERATORS, masterauth=OPERATORS, **options)

    def _program(self) -> str:
        return self._chosen

    def _listening(self) -> dict[str, str | int]:
        return {"tls-port": self.port, "port": 0} if self._certificate else super()._listening()

    def client(self) -> redis.Redis:
        """A client of an operator."""
        authority = str(self._certificate[0]) if self._certificate else None
        return redis.Redis(
            port=self.port,
            host="127.0.0.1",
            password=OPERATORS,
            ssl=authority is not None,
            ssl_ca_certs=authority,
            socket_timeout=10,
            protocol=2,
        )


def files_of(certificate: tuple[Path, Path]) -> dict[str, str | int]:
    """Options of a server that takes nothing but TLS."""
    made, key = map(str, certificate)
    files = {"tls_cert_file": made, "tls_key_file": key, "tls_ca_cert_file": made}
    return {**files, "tls_auth_clients": "no", "tls_replication": "yes"}
