-- Note the RPs at which something happened for a peer, and notify the task that forwards to it.
-- KEYS: dirty, turn, ring, sent   ARGV: how long `sent` holds (ms), 1 to send a task though one was sent, RPs
-- Returns 1 where a task is to be sent
if #ARGV > 2 then
  for at = 3, #ARGV, 1000 do redis.call('SADD', KEYS[1], unpack(ARGV, at, math.min(at + 999, #ARGV))) end
end
if redis.call('EXISTS', KEYS[2]) == 1 then
  if redis.call('LLEN', KEYS[3]) == 0 then redis.call('RPUSH', KEYS[3], '1'); redis.call('PEXPIRE', KEYS[3], ARGV[1]) end
  return 0
end
if ARGV[2] == '1' then redis.call('DEL', KEYS[4]) end
return redis.call('SET', KEYS[4], '1', 'NX', 'PX', ARGV[1]) and 1 or 0
