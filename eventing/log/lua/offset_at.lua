-- Return the place in a log of a time. KEYS: log, meta   ARGV: milliseconds
-- Returns NOLOG, else {epoch of cursors, offset of the first event stored at that time or later, else the next offset; 1 if the time is
-- in the future}
local log, meta, ms = KEYS[1], KEYS[2], tonumber(ARGV[1])
local head = redis.call('HMGET', meta, 'e', 'n', 'a', 'p', 'h')
if not head[1] then return redis.error_reply('NOLOG there is no such log') end
local next_offset = tonumber(head[2])
drop_aged(log, next_offset, tonumber(head[3]))
local oldest = next_offset - redis.call('XLEN', log)
local readable = math.max(oldest, tonumber(head[5] or next_offset))
return {head[4] or head[1], first_stored(log, oldest, readable, ms), ms > now_ms() and 1 or 0}
