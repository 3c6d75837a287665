-- The oldest offset that lies within other bounds than the log's own: those of a durable subscription.
-- KEYS: log, meta   ARGV: most events, most bytes, age in ms or 0   Returns NOLOG, else the offset
local log, meta = KEYS[1], KEYS[2]
local head = redis.call('HMGET', meta, 'n', 't')
if not head[1] then return redis.error_reply('NOLOG there is no such log') end
local next_offset, total = tonumber(head[1]), tonumber(head[2])
local low = math.max(next_offset - redis.call('XLEN', log), next_offset - tonumber(ARGV[1]))
local bytes_max, age_ms, now = tonumber(ARGV[2]), tonumber(ARGV[3]), now_ms()
local high = next_offset
while low < high do
  local middle = math.floor((low + high) / 2)
  local entry = entry_at(log, middle)
  local within = total - tonumber(entry[2][4]) <= bytes_max or middle == next_offset - 1
  if within and (age_ms == 0 or entry_ms(entry) >= now - age_ms) then high = middle else low = middle + 1 end
end
return low
