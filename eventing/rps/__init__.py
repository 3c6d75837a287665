"""Rendezvous points: descriptors, quotas, policies, histories. `rules`, models, `selectors`, `services`, `api`, events."""
