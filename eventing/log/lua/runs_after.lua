-- Sealed runs that a vector lacks: whole runs, per feed in order, the feeds in turn.
-- KEYS: log, meta, feeds, prefix of the seals' keys
-- ARGV: own feed, most events, most bytes (one run is given even beyond these), number of the feed to begin with,
--       then the vector: feed, sequence, ...
-- Also ends after examining LOOKED_EVENTS entries or LOOKED_BYTES: an own run reaches over other feeds' events.
-- Returns NOLOG, else runs {feed, first, last, seal, leaves of the events not held any more, path, events...}
local LOOKED_EVENTS, LOOKED_BYTES = 8192, 8 * 1024 * 1024
local log, meta, feeds, prefix = unpack(KEYS)
local head = redis.call('HMGET', meta, 'e', 'n', 'q')
if not head[1] then return redis.error_reply('NOLOG there is no such log') end
local own, events_left, bytes_left = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local oldest = tonumber(head[2]) - redis.call('XLEN', log)
local have, top = {}, to_vector(redis.call('HGETALL', feeds))
for i = 5, #ARGV, 2 do have[ARGV[i]] = tonumber(ARGV[i + 1]) end
top[own] = tonumber(head[3] or 0)

local turn = {}
for feed, sequence in pairs(top) do
  if sequence > (have[feed] or 0) then turn[#turn + 1] = feed end
end
table.sort(turn)
for _ = 1, #turn > 0 and tonumber(ARGV[4]) % #turn or 0 do table.insert(turn, table.remove(turn, 1)) end

local runs, looked, looked_bytes = {}, 0, 0
while #turn > 0 do
  local again = {}
  for _, feed in ipairs(turn) do
    local entry = redis.call('XRANGE', prefix .. feed, int((have[feed] or 0) + 1), '+', 'COUNT', 1)[1]
    if entry then
      local seal = to_seal(entry)
      local run = {feed, int(seal.first), int(seal.last), seal.seal, '', seal.path}
      local bytes, begin = 0, math.max(seal.o, oldest)
      -- How many events there will be: all of an own run that is held whole, all entries of another feed's.
      local expected = feed ~= own and seal.z - begin + 1 or seal.o >= oldest and seal.last - seal.first + 1 or 1
      if expected > events_left and #runs > 0 then return runs end
      each_entry(log, begin, seal.z, function(held)
        local of = place_of(held)
        looked, looked_bytes = looked + 1, looked_bytes + #held[2][2]
        if of == feed or (of == '' and feed == own) then
          run[#run + 1] = held[2][2]
          bytes = bytes + #held[2][2]
        end
      end)
      local count = #run - 6
      run[5] = string.sub(seal.leaves, 1, LEAF_BYTES * (seal.last - seal.first + 1 - count))
      bytes, count = bytes + #run[5], math.max(count, 1)
      if (bytes > bytes_left or count > events_left) and #runs > 0 then return runs end
      bytes_left, events_left = bytes_left - bytes, events_left - count
      runs[#runs + 1] = run
      have[feed] = seal.last
      if looked > LOOKED_EVENTS or looked_bytes > LOOKED_BYTES then return runs end
      if seal.last < top[feed] then again[#again + 1] = feed end
    end
  end
  turn = again
end
return runs
