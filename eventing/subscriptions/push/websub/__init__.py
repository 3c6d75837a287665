"""WebSub (W3C Recommendation of 23 January 2018), the hub's part.

Pure functions: requests of subscribers and publishers become typed values (requests.py); verification of intent and denial
become addresses (callbacks.py), distribution becomes header fields (distribution.py); each RP has one topic (topics.py).

The life of a subscription: a request to the hub (gateway/endpoints/websub.py) waits in Redis (unsettled.py) -> the deliverer verifies
the intent of the callback, or sends the denial (process/hub_requests.py) -> a durable subscription with `deliver.mode` `websub` is
created or replaced (services/websub.py) -> events are distributed as to every endpoint (mode.py) -> its lease ends.
"""
