-- Append a verified run of another domain's feed: only the events after the held part; notify, unless they follow events
-- that wait for replicas (reveal.lua); store the seal.
-- KEYS: log, meta, ids, ids (previous window), feeds, vectors, the feed's seals
-- ARGV: notification channel, deduplication window ms, most ids per window, feed, first and last sequence of the run,
--       last sequence that may be left out here (0: none), seal, leaves, path, most foreign feeds, number of events N,
--       digest of the seal ('' for none), most foreign feeds of an origin, '1' if the server may be another one than
--       before (fence.lua), N digests, N event bodies: the run's last N
-- Returns NOLOG, OWNFEED, else {'new' | 'known' | 'hole' | 'full', sequence held, first offset or 0, events appended}
local log, meta, ids, old_ids, feeds, vectors, seals = unpack(KEYS)
local window_ms, ids_max, feed = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local run_first, run_last, gap_to, count = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[12])
local head = redis.call('HMGET', meta, 'e', 'n', 't', 'm', 'b', 'a', 'd', 'k', 'f', 'w', 'p', 'g', 'u', 'h')
if not head[1] then return redis.error_reply('NOLOG there is no such log') end
if head[10] == feed then return redis.error_reply('OWNFEED the feed is this log\'s own') end
local epoch, first, total, foreign = head[11] or head[1], tonumber(head[2]), tonumber(head[3]), tonumber(head[9] or 0)
local withheld = head[14]

local known = redis.call('HGET', feeds, feed)
local held = tonumber(known or 0)
if held >= run_last then return {'known', int(held), 0, 0} end
local sequence = math.max(run_last - count, held) + 1 -- of the first event to append
if sequence > held + 1 and gap_to < sequence - 1 then return {'hole', int(held), 0, 0} end
if not known then
  local origin = 'o' .. (string.match(ARGV[10], '^%S+') or '')
  local many = tonumber(redis.call('HGET', meta, origin) or 0) >= tonumber(ARGV[14])
  if many or redis.call('HLEN', feeds) >= tonumber(ARGV[11]) then return {'full', 0, 0, 0} end
  redis.call('HINCRBY', meta, origin, 1)
  redis.call('DEL', seals)
end

if ARGV[15] == '1' then
  local continued = adopted(meta, head[1], head[11], head[12], first)
  if continued then epoch, withheld = continued, false end
end
local mark = last_checkpoint(vectors, first - 1)
local marks = 0 -- checkpoints added: only then some may be too many
local marked = mark and offset_of(mark) or -CHECKPOINT_EVERY
if marked < first - 1 and (first - 1 - marked >= CHECKPOINT_EVERY or sequence > held + 1) then
  checkpoint(vectors, first - 1, vector_now(feeds, first, foreign))
  marked, marks = first - 1, 1
end

local now, appended = math.max(now_ms(), tonumber(head[13]) or newest_ms(log, first)), run_last - sequence + 1
local skipped = count - appended
local offset, run, digests = first, {}, {}
for i = skipped + 1, count do
  local body = ARGV[15 + count + i]
  redis.call('XADD', log, int(offset) .. '-' .. int(now), 'e', body, 'c', int(total), 'f', feed, 's', int(sequence))
  digests[#digests + 1] = ARGV[15 + i]
  run[#run + 1] = struct.pack('>I4', #body)
  run[#run + 1] = body
  offset, sequence, total = offset + 1, sequence + 1, total + #body
end
redis.call('HSET', feeds, feed, int(run_last))
seal_add(seals, run_first, run_last, first, offset - 1, ARGV[10], ARGV[8], ARGV[9])
redis.call('HSET', meta, 'f', int(foreign + appended), 'n', int(offset), 't', int(total), 'u', int(now), 'x' .. feed, ARGV[13])

if appended > 0 then
  -- An event that a publisher repeats here after publishing it elsewhere is recognised; an id keeps its first position.
  local remembered = window_turn(ids, old_ids, tonumber(head[7]), now, window_ms, ids_max)
  local here = redis.call('HMGET', ids, unpack(digests))
  local before = redis.call('HMGET', old_ids, unpack(digests))
  local fresh, listed = {}, {}
  for i, digest in ipairs(digests) do
    if not here[i] and not before[i] and not listed[digest] then
      listed[digest] = true
      fresh[#fresh + 1] = digest
      fresh[#fresh + 1] = int(first + i - 1)
    end
  end
  if #fresh > 0 then
    redis.call('HSET', ids, unpack(fresh))
    if remembered == 0 then
      redis.call('PEXPIRE', ids, 2 * window_ms)
      redis.call('HSET', meta, 'd', int(now))
    end
  end
  if offset - 1 - marked >= CHECKPOINT_EVERY then
    checkpoint(vectors, offset - 1, vector_now(feeds, offset, foreign + appended))
    marks = 1
  end
  redis.call('XTRIM', log, 'MAXLEN', head[4])
  if total - tonumber(head[8] or 0) > tonumber(head[5]) then drop_bytes(log, meta, offset, total, tonumber(head[5])) end
  drop_aged(log, offset, tonumber(head[6]))
  local place = epoch .. long(first) .. feed .. long(run_last - appended + 1)
  if not withheld then
    redis.call('PUBLISH', ARGV[1], struct.pack('>I1', 128 + #epoch) .. place .. table.concat(run))
  end
end
local oldest = offset - redis.call('XLEN', log)
if marks > 0 then vectors_trim(vectors, oldest) end
seals_trim(seals, oldest, SEALS_DROPPED_MAX)
return {'new', int(run_last), appended > 0 and first or 0, appended}
