-- Return the first offset whose event a reader with a vector lacks.
-- KEYS: log, meta, feeds, vectors   ARGV: own feed, then the vector: feed, sequence, ...
-- Returns NOLOG, else the offset: the log's next one if nothing is lacking, one before the oldest held if an event that
-- left the history is
local log, meta, feeds, vectors = unpack(KEYS)
local head = redis.call('HMGET', meta, 'n', 'f')
if not head[1] then return redis.error_reply('NOLOG there is no such log') end
local next_offset, have = tonumber(head[1]), {}
for i = 2, #ARGV, 2 do have[ARGV[i] == ARGV[1] and '' or ARGV[i]] = tonumber(ARGV[i + 1]) end
if not head[2] then return math.min((have[''] or 0) + 1, next_offset) end
local found = first_beyond(log, vectors, feeds, next_offset, tonumber(head[2]), function(feed) return have[feed] or 0 end)
return math.max(found, 1)
