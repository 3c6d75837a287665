-- Read a run of a log and its extent, as far as readers may have it, at one instant.
-- KEYS: log, meta, feeds, vectors
-- ARGV: first offset wanted, most events (0: only the extent), most bytes (one event is always given)
-- Returns NOLOG, else {epoch of cursors, first, next, bytes, offset of the first event given, events...}; where events of other
-- domains came, instead of that offset {it, places, vector, how many came}: places is index from 0, feed, sequence of
-- each event that does not continue the feed of the one before; vector the one before that offset, where events were
-- asked for and it is not beyond the log's end
local log, meta = KEYS[1], KEYS[2]
local head = redis.call('HMGET', meta, 'e', 'n', 't', 'a', 'f', 'p', 'h')
if not head[1] then return redis.error_reply('NOLOG there is no such log') end
local next_offset = tonumber(head[2])
drop_aged(log, next_offset, tonumber(head[4]))
local oldest = next_offset - redis.call('XLEN', log)
local bytes = 0
if oldest < next_offset then bytes = tonumber(head[3]) - tonumber(entry_at(log, oldest)[2][4]) end
local at, readable = math.max(tonumber(ARGV[1]), oldest), math.max(oldest, tonumber(head[7] or next_offset))
local left, room, step = tonumber(ARGV[2]), tonumber(ARGV[3]), 8
local answer = {head[6] or head[1], oldest, readable, bytes, at}
local foreign = tonumber(head[5])
if foreign then
  local known = left > 0 and at <= readable
  local vector = known and to_flat(vector_at(log, KEYS[4], KEYS[3], next_offset, foreign, at - 1)) or {}
  local came = foreign
  if readable < next_offset then
    came = readable - 1 - vector_at(log, KEYS[4], KEYS[3], next_offset, foreign, readable - 1)['']
  end
  answer[5] = {at, {}, vector, came}
end
local feed, sequence
while left > 0 and room > 0 and at < readable do
  local entries = redis.call('XRANGE', log, int(at), '+', 'COUNT', math.min(step, left, readable - at))
  for _, entry in ipairs(entries) do
    local body = entry[2][2]
    if room < #body and #answer > 5 then return answer end
    room = room - #body
    if foreign then
      local of, number = place_of(entry)
      if of ~= feed or number ~= sequence + 1 then
        local places = answer[5][2]
        places[#places + 1], places[#places + 2], places[#places + 3] = #answer - 5, of, int(number)
      end
      feed, sequence = of, number
    end
    answer[#answer + 1] = body
  end
  if #entries == 0 then break end
  at, left, step = at + #entries, left - #entries, math.min(step * 4, 256)
end
return answer
