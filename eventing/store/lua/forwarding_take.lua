-- Prolong the turn, and take what there is to do in it.
-- KEYS: turn, dirty, ring, again, waiting   ARGV: token, how long the turn holds (ms), now (ms), most RPs
-- Returns nil where another has the turn; else the dirty RPs, those at which a timer has expired, when the next one expires (ms), since
-- when a vector waits (s; '' for none), and 1 where a notification is taken with them
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return false end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
local dirty = redis.call('SPOP', KEYS[2], ARGV[4])
local rung = redis.call('EXISTS', KEYS[2]) == 0 and redis.call('DEL', KEYS[3]) or 0
local expired = redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', ARGV[3], 'LIMIT', 0, ARGV[4])
if #expired > 0 then redis.call('ZREM', KEYS[4], unpack(expired)) end
local timer = redis.call('ZRANGE', KEYS[4], 0, 0, 'WITHSCORES')
local waiting = redis.call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')
return {dirty, expired, timer[2] or '', waiting[2] or '', rung}
