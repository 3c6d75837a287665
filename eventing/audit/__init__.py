"""The audit: a hash-linked record of administrative changes and refusals."""
