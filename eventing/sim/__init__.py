"""Simulation: a deterministic world of domains over the machines of `overlay`, with network, faults, liars and checkers.

Nothing here decides anything that a machine of `overlay` decides, and nothing is cleaned up on a machine's behalf: a link to a
crashed domain stays until the domain that holds the link finds out. All chance comes from one seeded generator that the caller
passes, so a seed draws the whole world and replays it.
"""
