"""Migrations of the tables of `portal`: login links, roles, sessions, login attempts, external identities."""
