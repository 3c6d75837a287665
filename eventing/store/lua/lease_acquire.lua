-- Take a lease or, where the owner holds it, prolong it.
-- KEYS: lease   ARGV: owner, duration (ms)   Returns 1; 0 while another holds it.
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
