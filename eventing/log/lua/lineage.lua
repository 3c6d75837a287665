-- Return the epochs that a log continues; where another server wrote it last, continue it first (fence.lua).
-- KEYS: meta   ARGV: '1' if the server may be another one
-- Returns NOLOG, else {epoch of cursors, lineage: EPOCH:LAST ... or ''}
local meta = KEYS[1]
local head = redis.call('HMGET', meta, 'e', 'n', 'p', 'g', 'l')
if not head[1] then return redis.error_reply('NOLOG there is no such log') end
local continued = ARGV[1] == '1' and adopted(meta, head[1], head[3], head[4], tonumber(head[2]))
if continued then return {continued, redis.call('HGET', meta, 'l')} end
return {head[3] or head[1], head[5] or ''}
