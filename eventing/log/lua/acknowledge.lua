-- Move a durable subscription's cursor forward; never back, never past the log's end. A cursor of an epoch that the log
-- continues denotes the same event in the present one; one beyond its end, whose events were withdrawn, that end.
-- KEYS: meta, cursors   ARGV: subscription, epoch, offset, '1' if the server may be another one than before (fence.lua)
-- Returns NOLOG, {'epoch', epoch of cursors}, {'beyond', last offset}, else {'ok', offset now held, epoch of cursors}
local meta, of, offset = KEYS[1], ARGV[2], tonumber(ARGV[3])
local head = redis.call('HMGET', meta, 'e', 'n', 'p', 'l', 'g')
if not head[1] then return redis.error_reply('NOLOG there is no such log') end
local epoch, last, lineage = head[3] or head[1], tonumber(head[2]) - 1, head[4]
if ARGV[4] == '1' and offset > last then
  epoch = adopted(meta, head[1], head[3], head[5], last + 1) or epoch
  lineage = redis.call('HGET', meta, 'l')
end
if of ~= epoch then
  local ended = lineage_end(lineage, of)
  if not ended then return {'epoch', epoch} end
  offset = math.min(offset, ended)
end
if offset > last then return {'beyond', int(last)} end
local held = redis.call('HGET', KEYS[2], ARGV[1])
if held then
  local held_of, at = string.match(held, '^(.-):(%d+)$')
  local most = held_of == epoch and last or lineage_end(lineage, held_of)
  if most then offset = math.max(offset, math.min(tonumber(at), most)) end
end
redis.call('HSET', KEYS[2], ARGV[1], epoch .. ':' .. int(offset))
return {'ok', int(offset), epoch}
