-- Heads of a log and its feeds.   KEYS: log, meta, feeds
-- Returns NOLOG, else {epoch, epoch of cursors, first offset held, next, last own sequence, last own sequence sealed, head of the own feed,
-- feed, sequence, head, ...}; a head is '' where none is known, and the whole digest of the seal since these are stored
local head = redis.call('HMGET', KEYS[2], 'e', 'n', 'f', 'q', 'w', 'p')
if not head[1] then return redis.error_reply('NOLOG there is no such log') end
local next_offset = tonumber(head[2])
local answer = {
  head[1], head[6] or head[1], next_offset - redis.call('XLEN', KEYS[1]), next_offset, next_offset - 1 - tonumber(head[3] or 0),
  tonumber(head[4] or 0), head[5] and redis.call('HGET', KEYS[2], 'x' .. head[5]) or '',
}
if not head[3] then return answer end
local feeds, names = redis.call('HGETALL', KEYS[3]), {}
if #feeds == 0 then return answer end
for i = 1, #feeds, 2 do names[#names + 1] = 'x' .. feeds[i] end
local seal_heads = redis.call('HMGET', KEYS[2], unpack(names))
for i = 1, #feeds, 2 do
  answer[#answer + 1], answer[#answer + 2], answer[#answer + 3] = feeds[i], feeds[i + 1], seal_heads[(i + 1) / 2] or ''
end
return answer
