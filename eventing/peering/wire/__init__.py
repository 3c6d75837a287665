"""Messages between domains: encoding, signatures, nonces, the client, traffic counts."""
