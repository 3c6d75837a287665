"""Access: who may do what. `rules` (pure), `models`, `selectors`, `services`, `api`; `verification` of credentials."""
