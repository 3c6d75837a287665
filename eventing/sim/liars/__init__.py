"""Liars: roles that take a domain's place in the world and misbehave, alone or as a coalition. One file for each family.

A liar can do whatever its own machine could send: it has its keys and those of its coalition, and no other's, so a record that it
makes for an honest domain is forged and marked as such. It cannot send under another domain's name.
"""
