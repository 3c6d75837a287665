-- Append a run of events to one log: deduplicate, number, store, bound the history, ring the bell once.
-- KEYS: log, meta, ids (present window), ids (previous window)
-- ARGV: bell channel, deduplication window ms, most ids per window, number of events N, N digests, N event bodies
-- Returns NOLOG if there is no log, else {epoch, first new offset, number of new events} and, only if some were
-- duplicates, an offset per event, negative for a duplicate (that of the event it repeats).
local log, meta, ids, old_ids = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local window_ms, ids_max, count = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local head = redis.call('HMGET', meta, 'e', 'n', 't', 'm', 'b', 'a', 'd')
if not head[1] then return redis.error_reply('NOLOG there is no such log') end
local epoch, first, total = head[1], tonumber(head[2]), tonumber(head[3])
local now = now_ms()

local started = tonumber(head[7])
if now - started > window_ms or redis.call('HLEN', ids) >= ids_max then
  if now - started > 2 * window_ms or redis.call('EXISTS', ids) == 0 then
    redis.call('DEL', ids, old_ids)
  else
    redis.call('RENAME', ids, old_ids)
  end
  redis.call('HSET', meta, 'd', int(now))
end

local digests = {}
for i = 1, count do digests[i] = ARGV[4 + i] end
local known, known_before = redis.call('HMGET', ids, unpack(digests)), false
if redis.call('EXISTS', old_ids) == 1 then known_before = redis.call('HMGET', old_ids, unpack(digests)) end

local next_offset, offsets, run, fresh, here, duplicates = first, {}, {}, {}, {}, 0
for i = 1, count do
  local earlier = known[i] or (known_before and known_before[i]) or here[digests[i]]
  if earlier then
    offsets[i] = -tonumber(earlier)
    duplicates = duplicates + 1
  else
    local body, offset = ARGV[4 + count + i], int(next_offset)
    redis.call('XADD', log, offset .. '-' .. int(now), 'e', body, 'c', int(total))
    fresh[#fresh + 1] = digests[i]
    fresh[#fresh + 1] = offset
    here[digests[i]] = offset
    run[#run + 1] = struct.pack('>I4', #body)
    run[#run + 1] = body
    offsets[i] = next_offset
    next_offset = next_offset + 1
    total = total + #body
  end
end

if #fresh > 0 then
  redis.call('HSET', ids, unpack(fresh))
  redis.call('PEXPIRE', ids, 2 * window_ms)
  redis.call('HSET', meta, 'n', int(next_offset), 't', int(total))
  redis.call('XTRIM', log, 'MAXLEN', head[4])
  local bytes_max = tonumber(head[5])
  -- Only when the bound by bytes may be broken is the oldest entry looked at; the newest event always stays.
  local oldest = next_offset - redis.call('XLEN', log)
  while oldest < next_offset - 1 do
    local entry = entry_at(log, oldest)
    if total - tonumber(entry[2][4]) <= bytes_max then break end
    oldest = oldest + 1
    redis.call('XTRIM', log, 'MINID', int(oldest))
  end
  drop_aged(log, next_offset, tonumber(head[6]))
  redis.call('PUBLISH', ARGV[1], struct.pack('>I1', #epoch) .. epoch .. struct.pack('>I4I4', math.floor(first / 4294967296), first % 4294967296) .. table.concat(run))
end
if duplicates == 0 then return {epoch, first, count} end
return {epoch, first, count - duplicates, offsets}
