-- Serialize all keys of one log at one instant, for a backup.
-- KEYS: meta
-- ARGV: prefix of the RP's keys, bytes from which a stream is read in pages instead, further keys below the prefix...
-- Returns NOLOG, else {now in ms, {name below the prefix, kind, time of expiry in ms or 0, value}...}; kind `d`: value is
-- of DUMP; `s`: a large stream, value is the id of its newest entry, up to which it is to be read
local PARTS = {'log', 'meta', 'ids', 'ids-before', 'feeds', 'vectors', 'cursors', 'floors', 'gaps', 'intake-uses'}
local prefix, whole_max = ARGV[1], tonumber(ARGV[2])
local meta = KEYS[1]
if redis.call('HEXISTS', meta, 'e') == 0 then return redis.error_reply('NOLOG there is no such log') end
local names, listed = {}, {}
local function list(name)
  if not listed[name] then
    listed[name] = true
    names[#names + 1] = name
  end
end
for _, name in ipairs(PARTS) do list(name) end
for _, feed in ipairs(redis.call('HKEYS', prefix .. 'feeds')) do list('seals:' .. feed) end
local own = redis.call('HGET', meta, 'w')
if own then list('seals:' .. own) end
for at = 3, #ARGV do list(ARGV[at]) end

local now = now_ms()
local answer = {int(now)}
for _, name in ipairs(names) do
  local key = prefix .. name
  local kind = redis.call('TYPE', key)['ok']
  if kind ~= 'none' then
    local left_ms = redis.call('PTTL', key)
    local until_ms = left_ms >= 0 and int(now + left_ms) or '0'
    if kind == 'stream' and redis.call('MEMORY', 'USAGE', key) > whole_max then
      local newest = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]
      answer[#answer + 1] = {name, 's', until_ms, newest and newest[1] or ''}
    else
      answer[#answer + 1] = {name, 'd', until_ms, redis.call('DUMP', key)}
    end
  end
end
return answer
