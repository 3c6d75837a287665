-- Return the newest seal of a feed, without the leaves beside it, which have up to 32 KiB.
-- KEYS: a feed's seals   Returns the seal, false if there is none
local entry = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
for at = 1, entry and #entry[2] or 0, 2 do
  if entry[2][at] == 's' then return entry[2][at + 1] end
end
return false
