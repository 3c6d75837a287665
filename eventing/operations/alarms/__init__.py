"""The alarm engine: watch rules evaluated against measurements of the domain, by one gateway at a time."""
