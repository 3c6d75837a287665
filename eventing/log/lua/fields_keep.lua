-- Write fields of a hash that has a bound.
-- KEYS: hash
-- ARGV: most fields, seconds to keep it, number D of fields to drop, D fields, then per field to write: name, value
local most, dropped = tonumber(ARGV[1]), tonumber(ARGV[3])
for at = 4, 3 + dropped do redis.call('HDEL', KEYS[1], ARGV[at]) end
for at = 4 + dropped, #ARGV, 2 do
  if redis.call('HEXISTS', KEYS[1], ARGV[at]) == 1 or redis.call('HLEN', KEYS[1]) < most then
    redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
  end
end
redis.call('EXPIRE', KEYS[1], ARGV[2])
