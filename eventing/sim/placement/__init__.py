"""A home and volunteers for simulations of placement: machines around the rules of operations/placement, without an overlay."""
