-- Begin a new epoch with the same bounds: an empty log, or one of the own events that no seal can cover.
-- KEYS: log, meta, ids, ids (previous window), feeds, vectors, prefix of the seals' keys
-- ARGV: new epoch, the epoch to end or '', time in ms: own unsealed events appended later are taken along; -1: none are
-- Returns NOLOG, else the epoch that is in use now: of several callers that find a stale log at once, one ends it
local CARRIED_MAX, CARRIED_BYTES_MAX = 10000, 16 * 1024 * 1024 -- what came since the log was put back
local IDS_MAX = 20000 -- more are not looked through: a repetition of what is taken along is then not recognised
local log, meta, ids, old_ids, feeds, vectors, prefix = unpack(KEYS)
local head = redis.call('HMGET', meta, 'e', 'n', 'f', 'q')
if not head[1] then return redis.error_reply('NOLOG there is no such log') end
if ARGV[2] ~= '' and head[1] ~= ARGV[2] then return head[1] end
local next_offset, foreign, sealed = tonumber(head[2]), tonumber(head[3] or 0), tonumber(head[4] or 0)

local after_ms, carried, bytes, moved = tonumber(ARGV[3]), {}, 0, {}
if after_ms >= 0 then
  each_entry(log, next_offset - redis.call('XLEN', log), next_offset - 1, function(entry)
    local feed, sequence = place_of(entry)
    if feed == '' and sequence > sealed and entry_ms(entry) > after_ms then
      carried[#carried + 1] = {int(entry_ms(entry)), entry[2][2]}
      moved[int(offset_of(entry))] = #carried
      bytes = bytes + #entry[2][2]
      return #carried == CARRIED_MAX or bytes > CARRIED_BYTES_MAX
    end
  end)
end
local known, lives_ms = {}, redis.call('PTTL', ids)
if #carried > 0 and redis.call('HLEN', ids) <= IDS_MAX then
  local flat = redis.call('HGETALL', ids)
  for i = 1, #flat, 2 do
    if moved[flat[i + 1]] then known[#known + 1] = {flat[i], moved[flat[i + 1]]} end
  end
end

feeds_drop(meta, feeds, vectors, prefix)
redis.call('DEL', log, ids, old_ids)
redis.call('HDEL', meta, 'f', 'q', 'w', 'l', 'p', 'g', 'h', 'y', 'j')
local total = 0
for offset, one in ipairs(carried) do
  redis.call('XADD', log, offset .. '-' .. one[1], 'e', one[2], 'c', int(total))
  total = total + #one[2]
end
for _, one in ipairs(known) do redis.call('HSET', ids, one[1], one[2]) end
if #known > 0 and lives_ms > 0 then redis.call('PEXPIRE', ids, lives_ms) end
redis.call('HSET', meta, 'e', ARGV[1], 'n', #carried + 1, 't', int(total), 'd', int(now_ms()), 'r', 1, 'k', 0)
return ARGV[1]
