"""Reports: runs of report jobs and their output. `rules`, models, `selectors`, `services`, `api`, events."""
