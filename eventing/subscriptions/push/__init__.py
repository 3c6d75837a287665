"""Push: durable subscriptions whose events Herald sends to an endpoint of the subscriber.

The life of a delivery: a subscription with `deliver.mode = webhook` is created (api, services) -> its endpoint is verified
before anything else is sent to it -> the process `deliverer` (process) reads the log once for all subscriptions of an RP,
has the mode make a request of the next events (webhook), sends it over bounded connections (wire), and decides by pure
rules (rules) about the answer: acknowledged, tried again later, given up as a dead letter, or the end of the endpoint.

The position of a subscription is its acknowledged cursor in the data plane, as for every durable subscription, so nothing
is copied per subscriber and a crash repeats what was not acknowledged.
"""
