"""The console: pages, accounts, login, and the context of templates."""
