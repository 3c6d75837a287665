-- Hand messages of another domain to the process that runs the overlay, and take the messages that wait for that domain.
-- KEYS: turn, prefix of inboxes, outbox   ARGV: entry, most entries of the inbox, how long an inbox is kept (ms)
-- Returns -1 where no process runs the overlay, -2 where its inbox is full, else the messages
local owner = redis.call('GET', KEYS[1])
if not owner then return -1 end
local inbox = KEYS[2] .. owner
if redis.call('LLEN', inbox) >= tonumber(ARGV[2]) then return -2 end
redis.call('RPUSH', inbox, ARGV[1])
redis.call('PEXPIRE', inbox, ARGV[3])
if not KEYS[3] then return {} end
local waiting = redis.call('LRANGE', KEYS[3], 0, -1)
if #waiting > 0 then redis.call('DEL', KEYS[3]) end
return waiting
