-- Vectors of a log that holds events of other domains' feeds: feed key -> sequence, '' being the own feed.
--   feeds: hash, last sequence held of each foreign feed
--   vectors: checkpoints, a stream; id OFFSET-1, the fields are the vector after that offset. Written by receive.lua:
--     before a run of a foreign feed if the last checkpoint P is CHECKPOINT_EVERY entries back or the run leaves
--     sequences out, and after it if P is so far back then. So the entries between P + CHECKPOINT_EVERY and the next
--     checkpoint (or the log's end) are consecutive ones of a single feed, and nothing looks at more than
--     CHECKPOINT_EVERY entries to know the vector at any offset. Appending own events writes none.
local CHECKPOINT_EVERY = 256
local CHUNK_MIN, CHUNK_MAX, CHUNK_BYTES = 8, 256, 256 * 1024 -- entries read at once: few while they are large

local function offset_of(entry)
  return tonumber(string.match(entry[1], '^(%d+)'))
end

-- The feed and the sequence of an entry of the log.
local function place_of(entry)
  local fields = entry[2]
  if fields[5] == 'f' then return fields[6], tonumber(fields[8]) end
  if fields[5] == 's' then return '', tonumber(fields[6]) end
  return '', offset_of(entry)
end

-- Call `visit` with the entries from offset `first` to `last`, both included, until it returns a value, which is returned.
local function each_entry(log, first, last, visit)
  local chunk = CHUNK_MIN
  while first <= last do
    local entries = redis.call('XRANGE', log, int(first), int(last), 'COUNT', chunk)
    if #entries == 0 then return nil end
    local bytes = 1
    for _, entry in ipairs(entries) do
      local found = visit(entry)
      if found then return found end
      bytes = bytes + #entry[2][2]
    end
    first = offset_of(entries[#entries]) + 1
    chunk = math.max(CHUNK_MIN, math.min(CHUNK_MAX, math.floor(CHUNK_BYTES * #entries / bytes)))
  end
end

local function to_vector(flat)
  local vector = {}
  for i = 1, #flat, 2 do vector[flat[i]] = tonumber(flat[i + 1]) end
  return vector
end

local function to_flat(vector)
  local flat = {}
  for feed, sequence in pairs(vector) do
    flat[#flat + 1] = feed
    flat[#flat + 1] = int(sequence)
  end
  return flat
end

-- The vector at the log's end; `foreign` is meta's f.
local function vector_now(feeds, next_offset, foreign)
  local vector = to_vector(redis.call('HGETALL', feeds))
  vector[''] = next_offset - 1 - foreign
  return vector
end

local function last_checkpoint(vectors, offset)
  return redis.call('XREVRANGE', vectors, int(offset), '-', 'COUNT', 1)[1]
end

-- The vector after `offset`, which is not before the oldest held but one: counted back from the next checkpoint.
local function vector_at(log, vectors, feeds, next_offset, foreign, offset)
  local before = last_checkpoint(vectors, offset)
  if not before then return {[''] = offset} end -- nothing foreign had come
  if offset_of(before) == offset then return to_vector(before[2]) end
  local after = redis.call('XRANGE', vectors, int(offset), '+', 'COUNT', 1)[1]
  local vector = after and to_vector(after[2]) or vector_now(feeds, next_offset, foreign)
  local top = after and offset_of(after) or next_offset - 1
  local seen = {}
  each_entry(log, offset + 1, math.min(top, math.max(offset_of(before) + CHECKPOINT_EVERY, offset + 1)), function(entry)
    local feed, sequence = place_of(entry)
    if not seen[feed] then
      seen[feed] = true
      vector[feed] = sequence - 1
    end
  end)
  return vector
end

-- The first offset whose event is beyond `held(feed)`: by bisection of the checkpoints, then a short scan.
-- 0: something beyond it has left the history. The log's next offset: nothing is.
local function first_beyond(log, vectors, feeds, next_offset, foreign, held)
  local function covered(vector)
    for feed, sequence in pairs(vector) do
      if sequence > held(feed) then return false end
    end
    return true
  end
  local low, high = next_offset - redis.call('XLEN', log) - 1, next_offset
  if not covered(vector_at(log, vectors, feeds, next_offset, foreign, low)) then return 0 end
  while high - low > 1 do
    local middle = math.floor((low + high) / 2)
    local mark = redis.call('XREVRANGE', vectors, int(middle), int(low + 1), 'COUNT', 1)[1]
      or redis.call('XRANGE', vectors, int(middle + 1), int(high - 1), 'COUNT', 1)[1]
    if not mark then break end
    if covered(to_vector(mark[2])) then low = offset_of(mark) else high = offset_of(mark) end
  end
  local top = math.min(high, next_offset - 1)
  local before = last_checkpoint(vectors, low)
  local scanned = math.min(top, math.max(before and offset_of(before) + CHECKPOINT_EVERY or 0, low + 1))
  local feed, sequence
  local found = each_entry(log, low + 1, scanned, function(entry)
    feed, sequence = place_of(entry)
    return sequence > held(feed) and offset_of(entry)
  end)
  if found or scanned >= top then return found or top + 1 end
  return math.min(top + 1, scanned + held(feed) - sequence + 1) -- the rest continues the last entry's feed
end

local function checkpoint(vectors, offset, vector)
  redis.call('XADD', vectors, int(offset) .. '-1', unpack(to_flat(vector)))
end

-- Drop the checkpoints that no offset held, nor the one before the oldest, needs.
local function vectors_trim(vectors, oldest)
  local base = last_checkpoint(vectors, oldest - 1)
  if base then redis.call('XTRIM', vectors, 'MINID', base[1]) end
end
