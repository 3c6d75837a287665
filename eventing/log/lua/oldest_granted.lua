-- Return the oldest offset that the bounds of a durable subscription grant.
-- KEYS: log, meta   ARGV: most events, most bytes, age in ms or 0   Returns NOLOG, else the offset
local head = redis.call('HMGET', KEYS[2], 'n', 't')
if not head[1] then return redis.error_reply('NOLOG there is no such log') end
return oldest_granted(KEYS[1], tonumber(head[1]), tonumber(head[2]), tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]))
