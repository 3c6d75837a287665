-- Return the oldest offset within other bounds than the log's own: those of a durable subscription.
local function oldest_granted(log, next_offset, total, events_max, bytes_max, age_ms)
  local low = math.max(next_offset - redis.call('XLEN', log), next_offset - events_max)
  local high, now = next_offset, now_ms()
  while low < high do
    local middle = math.floor((low + high) / 2)
    local entry = entry_at(log, middle)
    local within = total - tonumber(entry[2][4]) <= bytes_max or middle == next_offset - 1
    if within and (age_ms == 0 or entry_ms(entry) >= now - age_ms) then high = middle else low = middle + 1 end
  end
  return low
end
