"""Homes of RPs that change: planned moves, and their requests between domains."""
