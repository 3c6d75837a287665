"""Migrations of the tables of `eventing`. They import none of its code, so that they stay valid when it changes."""
