"""Administrative rendezvous points as their readers see them: what is reported, snapshots and live feed of the console.

The events themselves are written by `eventing.outbox.administrative_events`, in the transaction of the change.
"""
