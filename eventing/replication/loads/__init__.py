"""Present loads of the domains that serve an RP, asked while readers are balanced."""
