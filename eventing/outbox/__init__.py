"""The outbox: effects of a committed change, and the forms of the administrative events that are among them."""
