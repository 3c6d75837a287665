-- Remove a request to the WebSub hub that is settled, unless another one has replaced it.
-- KEYS: requests   ARGV: field, request
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then return redis.call('HDEL', KEYS[1], ARGV[1]) end
return 0
