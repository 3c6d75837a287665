"""Routes to a target reliability at least cost: graph, exact reliability, trees, disjoint paths, plans. Pure: no clock, no randomness."""
