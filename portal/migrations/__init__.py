"""Migrations of the tables of `portal`: login links, logins of programs, roles, sessions, login attempts, external identities."""
