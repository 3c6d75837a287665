"""Operation of the domain: `alarms`, load `samples`, sessions, leases; `rules`, models, `selectors`, `services`, `api`,
`events`.
"""
