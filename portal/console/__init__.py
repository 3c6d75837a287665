"""The console: pages, accounts, login, and what the pages are given."""
