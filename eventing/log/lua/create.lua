-- Create a log unless it exists, and set its bounds; an existing log keeps its epoch and its events (within the bounds).
-- KEYS: log, meta, ids (present window), ids (previous window), feeds, vectors, prefix of the seals' keys
-- ARGV: epoch to use if it is new, most events, most bytes, age in ms or 0
-- Returns {epoch of cursors, first, next that readers do not have, bytes}
local log, meta = KEYS[1], KEYS[2]
if redis.call('HSETNX', meta, 'e', ARGV[1]) == 1 then
  feeds_drop(meta, KEYS[5], KEYS[6], KEYS[7])
  redis.call('DEL', log, KEYS[3], KEYS[4])
  redis.call('HSET', meta, 'n', 1, 't', 0, 'd', int(now_ms()), 'r', 1, 'k', 0)
end
redis.call('HSET', meta, 'm', ARGV[2], 'b', ARGV[3], 'a', ARGV[4])
redis.call('XTRIM', log, 'MAXLEN', ARGV[2])
local head = redis.call('HMGET', meta, 'e', 'n', 't', 'p', 'h')
local next_offset, total = tonumber(head[2]), tonumber(head[3])
drop_bytes(log, meta, next_offset, total, tonumber(ARGV[3]))
drop_aged(log, next_offset, tonumber(ARGV[4]))
local oldest = next_offset - redis.call('XLEN', log)
local bytes = 0
if oldest < next_offset then bytes = total - tonumber(entry_at(log, oldest)[2][4]) end
return {head[4] or head[1], oldest, math.max(oldest, tonumber(head[5] or next_offset)), bytes}
