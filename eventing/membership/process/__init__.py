"""The process of the overlay: one thread of one process of the domain runs the machines."""
