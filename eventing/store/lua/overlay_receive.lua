-- Hand messages of another domain to the process that runs the overlay, and take the messages that wait for that domain.
-- KEYS: turn, inbox, outbox   ARGV: entry, most entries of the inbox
-- Returns -1 where no process runs the overlay, -2 where the inbox is full, else the messages
if redis.call('EXISTS', KEYS[1]) == 0 then return -1 end
if redis.call('LLEN', KEYS[2]) >= tonumber(ARGV[2]) then return -2 end
redis.call('RPUSH', KEYS[2], ARGV[1])
local waiting = redis.call('LRANGE', KEYS[3], 0, -1)
if #waiting > 0 then redis.call('DEL', KEYS[3]) end
return waiting
