"""`make demo`: five domains on this machine that exchange events while they are partitioned, killed and attacked
(docs/federation.md).
"""
