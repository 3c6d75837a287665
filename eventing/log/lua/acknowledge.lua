-- Move a durable subscription's cursor forward; never back, never past the log's end.
-- KEYS: meta, cursors   ARGV: subscription, epoch, offset
-- Returns NOLOG, {'epoch', current epoch}, {'beyond', last offset}, else {'ok', offset now held}
local head = redis.call('HMGET', KEYS[1], 'e', 'n')
if not head[1] then return redis.error_reply('NOLOG there is no such log') end
local offset, last = tonumber(ARGV[3]), tonumber(head[2]) - 1
if head[1] ~= ARGV[2] then return {'epoch', head[1]} end
if offset > last then return {'beyond', int(last)} end
local held = redis.call('HGET', KEYS[2], ARGV[1])
if held then
  local epoch, at = string.match(held, '^(.-):(%d+)$')
  if epoch == head[1] and tonumber(at) >= offset then return {'ok', at} end
end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2] .. ':' .. ARGV[3])
return {'ok', ARGV[3]}
