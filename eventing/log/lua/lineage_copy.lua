-- Copy the next entries of a log whose epoch ends, as they stand in the epoch after it: sealed own events as those of the
-- feed that ends, the others as the first of the new own feed.
-- KEYS: log, meta, copy   ARGV: feed that ends, offset to begin with, most entries
-- Returns NOLOG, else the offset to go on with; 0 when the copy is whole
local log, meta, copy, feed = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
local head = redis.call('HMGET', meta, 'e', 'n', 'q')
if not head[1] then return redis.error_reply('NOLOG there is no such log') end
local next_offset, sealed = tonumber(head[2]), tonumber(head[3] or 0)
local first = math.max(tonumber(ARGV[2]), next_offset - redis.call('XLEN', log))
local last = first
for _, entry in ipairs(redis.call('XRANGE', log, int(first), '+', 'COUNT', ARGV[3])) do
  local fields = entry[2]
  local of, sequence = place_of(entry)
  if of ~= '' then
    redis.call('XADD', copy, entry[1], unpack(fields))
  elseif sequence <= sealed then
    redis.call('XADD', copy, entry[1], 'e', fields[2], 'c', fields[4], 'f', feed, 's', int(sequence))
  else
    redis.call('XADD', copy, entry[1], 'e', fields[2], 'c', fields[4], 's', int(sequence - sealed))
  end
  last = offset_of(entry) + 1
end
return last < next_offset and int(last) or 0
