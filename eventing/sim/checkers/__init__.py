"""Checkers: what must hold in every world, whatever happens in it. Safety holds all the time, liveness once the faults have stopped."""
