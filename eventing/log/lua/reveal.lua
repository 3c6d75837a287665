-- Let readers have events that were withheld until replicas hold them, and publish their notifications.
-- KEYS: log, meta
-- ARGV: notification channel, epoch of cursors in which they were appended, offset after the last one that replicas hold
-- Returns NOLOG, else the offset of the first event that is still withheld, 0 if none is. Offset 0 reveals none, but is a
-- write all the same, for WAIT.
local EVENTS_MAX, BYTES_MAX = 500, 1024 * 1024 -- published at once; of more only the last, and gateways read the others
local log, meta, channel = KEYS[1], KEYS[2], ARGV[1]
local head = redis.call('HMGET', meta, 'e', 'n', 'p', 'h', 'y', 'f')
if not head[1] then return redis.error_reply('NOLOG there is no such log') end
local epoch, next_offset, first = head[3] or head[1], tonumber(head[2]), tonumber(head[4])
if not first or epoch ~= ARGV[2] then return 0 end
local after, foreign, left = tonumber(ARGV[3]), head[6], 0
if after >= tonumber(head[5]) then -- what follows was to wait for nothing but them
  after = next_offset
  redis.call('HDEL', meta, 'h', 'y', 'j')
else
  after, left = math.max(after, first), math.max(after, first)
  redis.call('HSET', meta, 'h', int(after))
end
first = math.max(first, next_offset - redis.call('XLEN', log))
if after <= first then return left end

local size, count = 0, after - first
if count <= EVENTS_MAX then
  each_entry(log, first, after - 1, function(entry)
    size = size + #entry[2][2]
    return size > BYTES_MAX or nil
  end)
end
if count > EVENTS_MAX or size > BYTES_MAX then first = after - 1 end
local run, run_first, feed, sequence = {}, first, nil, nil
local function publish()
  if #run == 0 then return end
  local place, form = epoch .. long(run_first), 0
  if foreign and feed == '' then form, place = 64, place .. long(sequence) end
  if foreign and feed ~= '' then form, place = 128, place .. feed .. long(sequence) end
  redis.call('PUBLISH', channel, struct.pack('>I1', form + #epoch) .. place .. table.concat(run))
end
each_entry(log, first, after - 1, function(entry)
  local of, number = place_of(entry)
  if of ~= feed or number ~= sequence + #run / 2 then
    publish()
    run, run_first, feed, sequence = {}, offset_of(entry), of, number
  end
  run[#run + 1] = struct.pack('>I4', #entry[2][2])
  run[#run + 1] = entry[2][2]
end)
publish()
return left
