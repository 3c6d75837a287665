"""Domains that measure their links and plan routes, for simulations of target reliability: machines around the rules of replication."""
