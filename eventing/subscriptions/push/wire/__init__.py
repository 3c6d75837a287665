"""HTTP to endpoints: resolution with checked addresses, connections, and the pool of them."""
