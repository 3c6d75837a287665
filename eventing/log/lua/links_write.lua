-- Write the links with a peer that are as they were read.
-- KEYS: links, again
-- ARGV: per change: RP, link as read (empty: none), link as it shall be, when to look again (ms; empty: never)
-- Returns the positions (from 0) of those that had changed
local missed = {}
for at = 1, #ARGV, 4 do
  local rp, before = ARGV[at], ARGV[at + 1]
  if (redis.call('HGET', KEYS[1], rp) or '') == before then
    redis.call('HSET', KEYS[1], rp, ARGV[at + 2])
    if ARGV[at + 3] == '' then redis.call('ZREM', KEYS[2], rp) else redis.call('ZADD', KEYS[2], ARGV[at + 3], rp) end
  else
    missed[#missed + 1] = (at - 1) / 4
  end
end
return missed
