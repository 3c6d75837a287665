"""Other domains, with their documents, keys and trust. `rules`, `models`, `selectors`, `services`, `api`, `events`;
`wire` holds the messages and signatures.
"""
