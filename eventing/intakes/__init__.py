"""Intakes: addresses at which other systems' webhooks become events of a rendezvous point."""
