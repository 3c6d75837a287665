-- Add to the decaying counts of a link, and smooth its delay.
-- KEYS: tally   ARGV: now (s), half-life (s), kept (ms), 1 to begin a tally, delivered, lost, answered, silent, samples, delay (ms), jitter (ms)
if ARGV[4] == '0' and redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local held = redis.call('HMGET', KEYS[1], 'at', 'delivered', 'lost', 'answered', 'silent', 'delay_ms', 'jitter_ms')
local now = tonumber(ARGV[1])
local at = tonumber(held[1] or now)
local decay = 0.5 ^ (math.max(0, now - at) / tonumber(ARGV[2]))
local values = { 'at', string.format('%.3f', math.max(now, at)) }
for place, name in ipairs({ 'delivered', 'lost', 'answered', 'silent' }) do
  values[#values + 1] = name
  values[#values + 1] = string.format('%.6f', tonumber(held[place + 1] or 0) * decay + tonumber(ARGV[place + 4]))
end
if tonumber(ARGV[9]) > 0 then
  local share = held[6] and 1 - 0.875 ^ tonumber(ARGV[9]) or 1
  for place, name in ipairs({ 'delay_ms', 'jitter_ms' }) do
    local before, new = tonumber(held[place + 5] or 0), tonumber(ARGV[place + 9])
    values[#values + 1] = name
    values[#values + 1] = string.format('%.3f', before + share * (new - before))
  end
end
redis.call('HSET', KEYS[1], unpack(values))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
