-- Return the vector after an offset.   KEYS: log, meta, feeds, vectors   ARGV: offset
-- Returns NOLOG, {} if it is not known any more or not yet, else {feed, sequence, ...}, '' being the own feed
local log, meta, feeds, vectors = unpack(KEYS)
local head = redis.call('HMGET', meta, 'n', 'f')
if not head[1] then return redis.error_reply('NOLOG there is no such log') end
local next_offset, offset = tonumber(head[1]), tonumber(ARGV[1])
if offset >= next_offset then return {} end
if not head[2] then return {'', int(offset)} end
if offset < next_offset - redis.call('XLEN', log) - 1 then return {} end
return to_flat(vector_at(log, vectors, feeds, next_offset, tonumber(head[2]), offset))
