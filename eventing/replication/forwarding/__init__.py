"""Exchange of runs of events between domains: wake-up, sending, validation, storing, sweeping."""
