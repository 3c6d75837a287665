"""The outbox: effects of a committed change, and the form of the administrative events among them."""
