"""Optional login at an OpenID Connect provider (HERALD_OIDC_*): the authorization code flow with state, nonce and PKCE.

flow.py runs the flow, with joserfc for signatures. The provider's addresses are those of its discovery document, fetched
within bounds; our own address is HERALD_PUBLIC_URL and never the Host header; and a user is the pair of issuer and
subject, never an e-mail address, with the role that the provider's claim maps to. A login without a mapped role is
refused.
"""
