-- Remove entries beyond the age bound; report the events that left the history since the last call, by any bound.
-- Seals and checkpoints of removed events are removed too.
-- KEYS: log, meta, feeds, vectors, prefix of the seals' keys
-- ARGV, to remove more on request: epoch of cursors, oldest offset to keep (the next one: nothing is kept)
-- Returns NOLOG, else {events trimmed since the last call, oldest offset held}, then events removed on
-- request, if requested; none if the epoch is another
local log, meta, feeds, vectors, prefix = unpack(KEYS)
local head = redis.call('HMGET', meta, 'n', 'a', 'r', 'f', 'w', 'e', 'p')
if not head[1] then return redis.error_reply('NOLOG there is no such log') end
drop_aged(log, tonumber(head[1]), tonumber(head[2]))
local oldest, wanted = tonumber(head[1]) - redis.call('XLEN', log), 0
if ARGV[1] == (head[7] or head[6]) then
  local keep = math.min(tonumber(ARGV[2]), tonumber(head[1]))
  wanted = math.max(keep - oldest, 0)
  if wanted > 0 and keep == tonumber(head[1]) then
    redis.call('XTRIM', log, 'MAXLEN', 0)
  elseif wanted > 0 then
    redis.call('XTRIM', log, 'MINID', int(keep))
  end
  oldest = oldest + wanted
end
if oldest > tonumber(head[3]) then redis.call('HSET', meta, 'r', int(oldest)) end
local left = SEALS_DROPPED_MAX
if head[5] then left = left - seals_trim(prefix .. head[5], oldest, left) end
if head[4] then
  vectors_trim(vectors, oldest)
  for _, feed in ipairs(redis.call('HKEYS', feeds)) do left = left - seals_trim(prefix .. feed, oldest, left) end
end
return {oldest - tonumber(head[3]), oldest, ARGV[1] and wanted}
