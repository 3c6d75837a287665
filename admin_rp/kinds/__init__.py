"""The kinds of administrative events, a module for each part of the domain. admin_rp/catalogue.py puts them together."""
