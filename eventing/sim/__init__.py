"""Simulation: a deterministic world of domains over the machines of `overlay`, with network, faults, liars and checkers.

Nothing here decides anything that a machine of `overlay` decides, and nothing is cleaned up on a machine's behalf: a link to a
crashed domain stays until the domain that holds the link finds out. One seeded generator, which the caller passes,
is the source of all chance, so a seed draws the whole world and replays it.
"""
