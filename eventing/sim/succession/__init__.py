"""A home and its electors for simulations of succession: machines around overlay/succession.py, without an overlay."""
