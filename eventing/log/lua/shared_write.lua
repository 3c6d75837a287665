-- Write the standing of a shared subscription, if it is unchanged since it was read.
-- KEYS: hash   ARGV: standing as read (empty: none), standing, line (empty: as it is), seconds to keep it   Returns 1 or 0
if (redis.call('HGET', KEYS[1], 's') or '') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 's', ARGV[2])
if ARGV[3] ~= '' then redis.call('HSET', KEYS[1], 'l', ARGV[3]) end
redis.call('EXPIRE', KEYS[1], ARGV[4])
return 1
