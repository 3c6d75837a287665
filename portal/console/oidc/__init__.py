"""Optional login at an OpenID Connect provider (HERALD_OIDC_*): the authorization code flow with state, nonce and PKCE.

mozilla-django-oidc keeps state, nonce and verifier in the session and runs the flow. What it leaves open is closed here:
the provider's addresses come from its discovery document, fetched within bounds; our own address is HERALD_PUBLIC_URL and
never the Host header; issuer, audience, authorized party and times of the id token are checked beside its signature; and a
user is the pair of issuer and subject, never an address of mail, with the role that the provider's claim maps to. No
mapped role, no way in.
"""
