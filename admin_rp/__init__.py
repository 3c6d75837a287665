"""Administrative rendezvous points for their readers: the catalogue of events, snapshots, and the state built from
both.

The events themselves are written by `eventing.outbox.administrative_events`, in the transaction of the change.
"""
