"""What domains sign and exchange, and what each makes of it: seals, links, peers, misbehaviour. Pure."""
