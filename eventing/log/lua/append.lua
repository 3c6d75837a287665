-- Append runs of events to logs, one run for each log: deduplicate, number, store, bound the history, publish one notification
-- for each run. Where they are to wait for replicas, or follow some that do, readers get neither them nor the notification yet
-- (reveal.lua). What becomes of a run does not depend on the others.
-- KEYS: for each run: log, meta, ids (present window), ids (previous window)
-- ARGV: deduplication window ms, most ids per window, replicas to wait for, then for each run: notification channel, number of
--       events N, N digests, N event bodies
-- Returns the answer of the only run, else a list of the answers, in order. An answer is NOLOG if there is no log, an error, or
-- {epoch of cursors, first new offset, number of new events} and, only if some were duplicates, an offset per event, negative
-- for a duplicate (that of the event it repeats).
local window_ms, ids_max, replicas = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

-- Append the `count` events of one run; its channel is ARGV[at].
local function append(log, meta, ids, old_ids, at, count)
  local head = redis.call('HMGET', meta, 'e', 'n', 't', 'm', 'b', 'a', 'd', 'k', 'f', 'p', 'g', 'u', 'h')
  if not head[1] then return redis.error_reply('NOLOG there is no such log') end
  local epoch, first, total, withheld = head[10] or head[1], tonumber(head[2]), tonumber(head[3]), head[13]
  local foreign = head[9] -- only where events of other domains came: the entries say their sequences then
  local continued = adopted(meta, head[1], head[10], head[11], first)
  if continued then epoch, withheld = continued, false end
  local now = math.max(now_ms(), tonumber(head[12]) or newest_ms(log, first))
  local stamp = int(now)

  local remembered = window_turn(ids, old_ids, tonumber(head[7]), now, window_ms, ids_max)

  local digests, bodies = at + 1, at + 1 + count -- places in ARGV before them
  local known = remembered > 0 and redis.call('HMGET', ids, unpack(ARGV, digests + 1, digests + count)) or {}
  local known_before = redis.call('HMGET', old_ids, unpack(ARGV, digests + 1, digests + count))

  local next_offset, offsets, run, fresh, here, duplicates = first, {}, {}, {}, {}, 0
  for i = 1, count do
    local digest = ARGV[digests + i]
    local earlier = known[i] or known_before[i] or here[digest]
    if earlier then
      offsets[i] = -tonumber(earlier)
      duplicates = duplicates + 1
    else
      local body, offset = ARGV[bodies + i], int(next_offset)
      if foreign then
        redis.call('XADD', log, offset .. '-' .. stamp, 'e', body, 'c', int(total), 's', int(next_offset - foreign))
      else
        redis.call('XADD', log, offset .. '-' .. stamp, 'e', body, 'c', int(total))
      end
      fresh[#fresh + 1] = digest
      fresh[#fresh + 1] = offset
      here[digest] = offset
      run[#run + 1] = struct.pack('>I4', #body)
      run[#run + 1] = body
      offsets[i] = next_offset
      next_offset = next_offset + 1
      total = total + #body
    end
  end

  if #fresh == 0 then
    -- Write in any case: WAIT and WAITAOF refer to the last write of this connection.
    redis.call('HSET', meta, 'n', head[2])
  else
    redis.call('HSET', ids, unpack(fresh))
    if remembered == 0 then
      redis.call('PEXPIRE', ids, 2 * window_ms)
      redis.call('HSET', meta, 'n', int(next_offset), 't', int(total), 'u', stamp, 'd', stamp)
    else
      redis.call('HSET', meta, 'n', int(next_offset), 't', int(total), 'u', stamp)
    end
    redis.call('XTRIM', log, 'MAXLEN', head[4])
    if total - tonumber(head[8] or 0) > tonumber(head[5]) then
      drop_bytes(log, meta, next_offset, total, tonumber(head[5]))
    end
    drop_aged(log, next_offset, tonumber(head[6]))
    local place = epoch .. long(first)
    if replicas > 0 then
      local most = math.max(replicas, tonumber(withheld and redis.call('HGET', meta, 'j') or 0))
      redis.call('HSET', meta, 'h', withheld or int(first), 'y', int(next_offset), 'j', most)
    elseif withheld then -- readers get it with those before it
    elseif foreign then
      redis.call('PUBLISH', ARGV[at], struct.pack('>I1', 64 + #epoch) .. place .. long(first - foreign) .. table.concat(run))
    else
      redis.call('PUBLISH', ARGV[at], struct.pack('>I1', #epoch) .. place .. table.concat(run))
    end
  end
  if duplicates == 0 then return {epoch, first, count} end
  return {epoch, first, count - duplicates, offsets}
end

if #KEYS == 4 then return append(KEYS[1], KEYS[2], KEYS[3], KEYS[4], 4, tonumber(ARGV[5])) end
local answers, at = {}, 4
for run = 1, #KEYS / 4 do
  local key, count = 4 * run, tonumber(ARGV[at + 1])
  local done, answer = pcall(append, KEYS[key - 3], KEYS[key - 2], KEYS[key - 1], KEYS[key], at, count)
  if not done and type(answer) ~= 'table' then answer = redis.error_reply('ERR ' .. tostring(answer)) end
  answers[run], at = answer, at + 2 + 2 * count
end
return answers
