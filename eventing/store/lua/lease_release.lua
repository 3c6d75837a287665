-- End a lease that the owner holds.
-- KEYS: lease   ARGV: owner   Returns 1; 0 where the lease has expired or another holds it.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
