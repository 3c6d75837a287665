-- Own events that no seal covers yet, the oldest first, as far as readers may have them.
-- KEYS: log, meta, feeds, vectors   ARGV: most events, most bytes (one event is always given), most offsets looked at
-- Returns NOLOG, else {epoch, first sequence unsealed, sequence of the first event given (what is between left the
-- history), offset of the first and of the last event given, events...}
local log, meta, feeds, vectors = unpack(KEYS)
local head = redis.call('HMGET', meta, 'e', 'n', 'f', 'q', 'h')
if not head[1] then return redis.error_reply('NOLOG there is no such log') end
local next_offset, foreign, sealed = tonumber(head[2]), tonumber(head[3] or 0), tonumber(head[4] or 0)
local events_max, bytes_max, looked_max = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local own_last, readable = next_offset - 1 - foreign, next_offset
if head[5] then
  readable = math.max(tonumber(head[5]), next_offset - redis.call('XLEN', log))
  own_last = vector_at(log, vectors, feeds, next_offset, foreign, readable - 1)['']
end
local answer = {head[1], int(sealed + 1), int(sealed + 1), 0, 0}
-- Where the log ends with nothing but what is not sealed, which is usual, no vector is needed to find it.
local at = readable - (own_last - sealed)
local entry = own_last > sealed and entry_at(log, at)
local feed, sequence
if entry then feed, sequence = place_of(entry) end
if feed ~= '' or sequence ~= sealed + 1 then
  local oldest = next_offset - redis.call('XLEN', log)
  local start = vector_at(log, vectors, feeds, next_offset, foreign, oldest - 1)[''] + 1 -- oldest own sequence held
  start = math.max(start, sealed + 1)
  answer[3] = int(start)
  if start > own_last then return answer end
  at = first_beyond(log, vectors, feeds, next_offset, foreign, function(name)
    return name == '' and start - 1 or math.huge
  end)
end
local bytes, looked_bytes = 0, 0
each_entry(log, at, math.min(readable - 1, at + looked_max - 1), function(entry)
  local body = entry[2][2]
  looked_bytes = looked_bytes + #body
  if place_of(entry) == '' then
    bytes = bytes + #body
    if bytes > bytes_max and #answer > 5 then return true end
    answer[#answer + 1] = body
    answer[5] = int(offset_of(entry))
    if #answer == 6 then answer[4] = answer[5] end
    if #answer - 5 == events_max then return true end
  end
  return looked_bytes > 4 * bytes_max and #answer > 5
end)
return answer
