"""Several domains: keys, signatures, exchange, replicas, misbehaviour."""
