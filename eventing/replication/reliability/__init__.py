"""Target reliability of RPs: what this domain measures and knows of links, its plans, and what arrived."""
