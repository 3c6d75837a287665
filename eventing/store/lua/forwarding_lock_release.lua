-- Give the turn back, unless something is noted or was just notified.
-- KEYS: dirty, turn, ring   ARGV: token, 1 to end whatever is dirty   Returns 0 where the turn goes on
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 1 end
if ARGV[2] == '0' and (redis.call('SCARD', KEYS[1]) > 0 or redis.call('LLEN', KEYS[3]) > 0) then return 0 end
redis.call('DEL', KEYS[2], KEYS[3])
return 1
