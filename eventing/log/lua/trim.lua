-- Remove what the age bound no longer allows and say how much history went since the last call, by whatever bound.
-- KEYS: log, meta   Returns NOLOG, else {events trimmed since the last call, oldest offset held}
local log, meta = KEYS[1], KEYS[2]
local head = redis.call('HMGET', meta, 'n', 'a', 'r')
if not head[1] then return redis.error_reply('NOLOG there is no such log') end
drop_aged(log, tonumber(head[1]), tonumber(head[2]))
local oldest = tonumber(head[1]) - redis.call('XLEN', log)
if oldest > tonumber(head[3]) then redis.call('HSET', meta, 'r', int(oldest)) end
return {oldest - tonumber(head[3]), oldest}
