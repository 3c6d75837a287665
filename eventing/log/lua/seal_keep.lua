-- Store the seal of an own run, unless another process has sealed any of it.
-- KEYS: log, meta, feeds, vectors, the own feed's seals
-- ARGV: epoch that was sealed or '', own feed, first and last sequence, first and last offset, seal, leaves,
--       digest of the seal ('' for none)
-- Returns NOLOG, else 1 if it is kept, 0 if it does not follow the last one kept
local log, meta, feeds, vectors, seals = unpack(KEYS)
local head = redis.call('HMGET', meta, 'e', 'n', 'f', 'q', 'w')
if not head[1] then return redis.error_reply('NOLOG there is no such log') end
local next_offset, foreign, sealed = tonumber(head[2]), tonumber(head[3] or 0), tonumber(head[4] or 0)
local first, last = tonumber(ARGV[3]), tonumber(ARGV[4])
local oldest = next_offset - redis.call('XLEN', log)
if (ARGV[1] ~= '' and ARGV[1] ~= head[1]) or (head[5] and head[5] ~= ARGV[2]) then return 0 end
if first <= sealed or last < first or last > next_offset - 1 - foreign then return 0 end
-- Sequences may be left out only if their events left the history unsealed.
if first > sealed + 1 and vector_at(log, vectors, feeds, next_offset, foreign, oldest - 1)[''] < first - 1 then return 0 end
if sealed == 0 then redis.call('DEL', seals) end
seal_add(seals, first, last, tonumber(ARGV[5]), tonumber(ARGV[6]), '', ARGV[7], ARGV[8])
redis.call('HSET', meta, 'q', int(last), 'w', ARGV[2], 'x' .. ARGV[2], ARGV[9])
seals_trim(seals, oldest, SEALS_DROPPED_MAX)
return 1
