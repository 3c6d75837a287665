"""Durable subscriptions, and those that several domains hold (`sharing`). `rules`, `models`, `selectors`, `services`,
`api`, events.
"""
