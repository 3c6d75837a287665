-- Join a vector with the acknowledged vector of a shared subscription: no sequence is lowered.
-- KEYS: hash   ARGV: feeds that may be kept, seconds to keep it, then feed and sequence of each   Returns how many grew
local grew, room = 0, tonumber(ARGV[1]) + 2 - redis.call('HLEN', KEYS[1])
for at = 3, #ARGV, 2 do
  local held = redis.call('HGET', KEYS[1], ARGV[at])
  if (held and tonumber(held) < tonumber(ARGV[at + 1])) or (not held and room > 0) then
    if not held then room = room - 1 end
    redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
    grew = grew + 1
  end
end
redis.call('EXPIRE', KEYS[1], ARGV[2])
return grew
