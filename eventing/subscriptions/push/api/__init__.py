"""REST views of push: the endpoint of a subscription, attempts, dead letters, replays."""
