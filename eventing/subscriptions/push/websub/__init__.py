"""WebSub (W3C Recommendation of 23 January 2018), the hub's part, as pure functions.

Requests of subscribers and publishers become typed values (requests.py); the verification of intent and the denial become
addresses (callbacks.py), the distribution of content becomes header fields (distribution.py).
"""
