-- Continue a log in a new epoch, with every event at its offset. Sealed own events become those of a feed like others',
-- with their seals: their numbers have left the domain. Own events without a seal are the first of the new own feed.
-- Cursors of durable subscriptions are moved to the new epoch.
-- KEYS: log, meta, feeds, vectors, subscriptions' cursors, copy of the log (lineage_copy.lua), seals of the feed that ends
-- ARGV: epoch that ends, new epoch, key of the feed that ends, this domain, most foreign feeds
-- Returns NOLOG; EPOCH if another epoch is in use; COPY if the copy is not whole; FULL if the log has too many feeds; else
-- the last offset of the epoch that ended
local log, meta, feeds, vectors, cursors, copy, seals = unpack(KEYS)
local was, epoch, feed = ARGV[1], ARGV[2], ARGV[3]
local head = redis.call('HMGET', meta, 'e', 'n', 'f', 'q', 'l', 'p')
if not head[1] then return redis.error_reply('NOLOG there is no such log') end
if head[1] ~= was then return redis.error_reply('EPOCH another epoch is in use') end
local next_offset, foreign, sealed = tonumber(head[2]), tonumber(head[3] or 0), tonumber(head[4] or 0)
local oldest = next_offset - redis.call('XLEN', log)

if sealed > 0 then
  if redis.call('XLEN', copy) ~= redis.call('XLEN', log) then return redis.error_reply('COPY it is not whole') end
  if redis.call('HLEN', feeds) >= tonumber(ARGV[5]) then return redis.error_reply('FULL the log has too many feeds') end
  -- Checkpoints in the terms of the new epoch; one more before the oldest event where there was none, and one at the last
  -- sealed event, where the own feed is divided (vectors.lua states what may be between two).
  local function divided(vector)
    local own = vector[''] or 0
    vector[feed], vector[''] = math.min(own, sealed), math.max(own - sealed, 0)
    return vector
  end
  local marks, known = {}, {}
  local function mark(offset, vector)
    known[offset] = true
    marks[#marks + 1] = {offset, divided(vector)}
  end
  for _, one in ipairs(redis.call('XRANGE', vectors, '-', '+')) do mark(offset_of(one), to_vector(one[2])) end
  if not last_checkpoint(vectors, oldest - 1) then mark(oldest - 1, {[''] = oldest - 1}) end
  local newest = redis.call('XREVRANGE', seals, '+', '-', 'COUNT', 1)[1]
  local boundary = newest and to_seal(newest).z or 0
  if boundary >= oldest and not known[boundary] then
    mark(boundary, vector_at(log, vectors, feeds, next_offset, foreign, boundary))
  end
  table.sort(marks, function(one, other) return one[1] < other[1] end)
  redis.call('DEL', vectors)
  for _, one in ipairs(marks) do checkpoint(vectors, one[1], one[2]) end

  if oldest < next_offset then redis.call('RENAME', copy, log) end
  redis.call('HSET', feeds, feed, int(sealed))
  redis.call('HINCRBY', meta, 'o' .. ARGV[4], 1)
  redis.call('HSET', meta, 'f', int(foreign + sealed))
  redis.call('HDEL', meta, 'q', 'w')
end

local present = head[6] or was
redis.call('HSET', meta, 'e', epoch, 'l', lineage_with(head[5], present, next_offset - 1))
redis.call('HDEL', meta, 'p', 'g', 'h', 'y', 'j')

local held = redis.call('HGETALL', cursors)
for i = 1, #held, 2 do
  local of, offset = string.match(held[i + 1], '^([^:]+):(%d+)')
  if of == present and tonumber(offset) < next_offset then
    redis.call('HSET', cursors, held[i], epoch .. ':' .. offset)
  end
end
return int(next_offset - 1)
