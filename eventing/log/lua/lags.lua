-- Lag of durable subscriptions of a log, with the values that determine their next loss, at one instant.
-- KEYS: log, meta, cursors
-- ARGV: of each subscription: id, cursor where none is kept, most events, most bytes, age in ms or 0
-- Returns NOLOG, else {epoch, first, next, bytes, how many events of other domains came, now in ms, bounds: events, bytes,
-- age in ms, ms of the newest event or 0, subscriptions...}; a subscription is {cursor, oldest_offset, ms of its oldest waiting event
-- or 0, bytes that wait}: of those held from the oldest_offset on. A cursor of an epoch that the log does not continue stands before the first event.
local log, meta, cursors = unpack(KEYS)
local head = redis.call('HMGET', meta, 'e', 'n', 't', 'm', 'b', 'a', 'f', 'p', 'l')
if not head[1] then return redis.error_reply('NOLOG there is no such log') end
local epoch, next_offset, total = head[8] or head[1], tonumber(head[2]), tonumber(head[3])
local events_max, bytes_max, age_ms = tonumber(head[4]), tonumber(head[5]), tonumber(head[6])
drop_aged(log, next_offset, age_ms)
local first, bytes, newest_ms = next_offset - redis.call('XLEN', log), 0, 0
if first < next_offset then
  bytes = total - tonumber(entry_at(log, first)[2][4])
  newest_ms = entry_ms(entry_at(log, next_offset - 1))
end
local answer = {epoch, first, next_offset, bytes, tonumber(head[7]) or 0, int(now_ms()), events_max, int(bytes_max),
  int(age_ms), int(newest_ms)}
local bounds_granted = {}

local function granted(events, size, age)
  if events >= events_max and size >= bytes_max and (age == 0 or (age_ms > 0 and age >= age_ms)) then return first end
  local name = events .. ' ' .. size .. ' ' .. age
  if not bounds_granted[name] then bounds_granted[name] = oldest_granted(log, next_offset, total, events, size, age) end
  return bounds_granted[name]
end

for at = 1, #ARGV, 5 do
  local cursor = redis.call('HGET', cursors, ARGV[at]) or ARGV[at + 1]
  local oldest_offset = granted(tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4]))
  local of, offset = string.match(cursor, '^([^:]+):(%d+)')
  local after = tonumber(offset) or 0
  if of and of ~= epoch then after = math.min(after, lineage_end(head[9], of) or 0) end
  if after >= next_offset then after = 0 end
  local oldest, oldest_ms, waiting = math.max(after + 1, oldest_offset), 0, 0
  if oldest < next_offset then
    local entry = entry_at(log, oldest)
    oldest_ms, waiting = entry_ms(entry), total - tonumber(entry[2][4])
  end
  answer[#answer + 1] = {cursor, oldest_offset, int(oldest_ms), int(waiting)}
end
return answer
