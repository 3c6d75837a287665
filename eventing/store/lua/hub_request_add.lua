-- Store a request to the WebSub hub within bounds; it replaces an unsettled one with the same topic and callback.
-- KEYS: requests, count of its source, count of its target   ARGV: field, request, and the greatest number of unsettled requests,
-- of a minute's from one source, of a minute's to one target
-- Returns `stored`, or the bound that is reached: `all`, `source`, `target`
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[3]) then return 'all' end
if tonumber(redis.call('GET', KEYS[2]) or '0') >= tonumber(ARGV[4]) then return 'source' end
if tonumber(redis.call('GET', KEYS[3]) or '0') >= tonumber(ARGV[5]) then return 'target' end
for at = 2, 3 do
  if redis.call('INCR', KEYS[at]) == 1 then redis.call('EXPIRE', KEYS[at], 60) end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 'stored'
