-- Prepended to every script. A log is a stream whose entry ids are OFFSET-MILLISECONDS, so that an entry is found by
-- offset and carries its age; offsets are contiguous, so the oldest is always next - length.
--   meta: e epoch, n next offset, t bytes ever appended, m/b/a bounds (events, bytes, age in ms or 0),
--         d start of the present deduplication window (ms), r oldest offset at the last report of trimming,
--         k bytes appended before the oldest entry, or before an older one: history holds at most t - k,
--         f events of other domains ever appended (absent: none), q last own sequence that is sealed, w own feed's key,
--         xFEED digest of a feed's newest seal, or its head, oDOMAIN feeds held of that origin,
--         l earlier epochs whose offsets are those of the present one, each EPOCH:LAST (absent: none),
--         p epoch in cursors, where servers with another history continued the log since e began (absent: e),
--         g replication id of the server that appended last (absent: no fence), u time in ms of the newest entry,
--         h first offset that readers do not have yet (absent: they have all), y the one after the last that waits for
--         replicas, j how many replicas it waits for
--   entry: e the event's bytes, c the bytes appended before it; one of another domain also f its feed and s its
--         sequence; an own one s once the log has others: until then its sequence is its offset

local called_at -- one time for all that a call does
local function now_ms()
  if not called_at then
    local time = redis.call('TIME')
    called_at = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  return called_at
end

-- A number as Redis expects it: integers beyond 1e14 would be written as floats by Lua.
local function int(number)
  return string.format('%.0f', number)
end

-- A number of 64 bits in network order, as in notifications.
local function long(number)
  return struct.pack('>I4I4', math.floor(number / 4294967296), number % 4294967296)
end

local function entry_at(log, offset)
  return redis.call('XRANGE', log, int(offset), int(offset), 'COUNT', 1)[1]
end

local function entry_ms(entry)
  return tonumber(string.match(entry[1], '-(%d+)$'))
end

-- Return the offset of the first entry of `low` to `high` - 1 that was stored at a time or later, else `high`: by bisection,
-- offsets being contiguous, and times growing with them.
local function first_stored(log, low, high, ms)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if entry_ms(entry_at(log, middle)) < ms then low = middle + 1 else high = middle end
  end
  return low
end

-- Remove entries older than the age bound.
local function drop_aged(log, next_offset, age_ms)
  if age_ms == 0 then return end
  local length = redis.call('XLEN', log)
  if length == 0 then return end
  local cutoff = now_ms() - age_ms
  local low = next_offset - length
  if entry_ms(entry_at(log, low)) >= cutoff then return end
  low = first_stored(log, low, next_offset, cutoff)
  if low == next_offset then
    redis.call('XTRIM', log, 'MAXLEN', 0)
  else
    redis.call('XTRIM', log, 'MINID', int(low))
  end
end

-- Remove the oldest until the bound by bytes holds; the newest event always stays.
local function drop_bytes(log, meta, next_offset, total, bytes_max)
  local oldest = next_offset - redis.call('XLEN', log)
  local keep = oldest
  while keep < next_offset - 1 and total - tonumber(entry_at(log, keep)[2][4]) > bytes_max do keep = keep + 1 end
  if keep > oldest then redis.call('XTRIM', log, 'MINID', int(keep)) end
  if keep < next_offset then redis.call('HSET', meta, 'k', entry_at(log, keep)[2][4]) end
end
