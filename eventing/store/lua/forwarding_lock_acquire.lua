-- Take the turn to forward to a peer. Safe to repeat where the answer was lost.
-- KEYS: turn, sent, paused   ARGV: token, how long the turn holds (ms)   Returns 1 or 0
if redis.call('GET', KEYS[1]) == ARGV[1] then return 1 end
if redis.call('EXISTS', KEYS[3]) == 1 then return 0 end
redis.call('DEL', KEYS[2])
return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0
