-- Have a log continue an epoch that its server does not know, because it lacks the history in which that epoch was in use.
-- KEYS: meta   ARGV: the log's epoch of cursors, the other epoch, the last offset up to which both have the same events
-- Returns NOLOG, else 1; 0 if the log has another epoch now, or knows the other one
local meta, present, epoch, last = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
local head = redis.call('HMGET', meta, 'e', 'p', 'l')
if not head[1] then return redis.error_reply('NOLOG there is no such log') end
if (head[2] or head[1]) ~= present or epoch == present or lineage_end(head[3], epoch) then return 0 end
redis.call('HSET', meta, 'l', lineage_with(head[3], epoch, last))
return 1
