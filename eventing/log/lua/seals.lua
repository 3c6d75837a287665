-- Seals of the runs of each feed, own and foreign: a stream per feed, an entry's id is LAST-0 of the run's sequences.
--   b first sequence, o/z first and last local offset of the run's events that came here, p path, s the seal,
--   l the leaf hashes of the whole run: trimmed events of a run can still be proved
local LEAF_BYTES = 32
local SEALS_DROPPED_MAX = 64 -- of one call: a seal has up to 32 KB of leaves

-- A seal read from its stream.
local function to_seal(entry)
  local values = entry[2]
  return {
    last = tonumber(string.match(entry[1], '^(%d+)')), first = tonumber(values[2]), o = tonumber(values[4]),
    z = tonumber(values[6]), path = values[8], seal = values[10], leaves = values[12],
  }
end

local function seal_add(seals, first, last, o, z, path, seal, leaves)
  redis.call('XADD', seals, int(last) .. '-0', 'b', int(first), 'o', int(o), 'z', int(z), 'p', path, 's', seal, 'l', leaves)
end

-- Remove seals without a held event, at most `most`; returns their number. The newest stays: the next one is linked
-- to it.
local function seals_trim(seals, oldest, most)
  for dropped = 0, most - 1 do
    local one = redis.call('XRANGE', seals, '-', '+', 'COUNT', 1)[1]
    if not one or tonumber(one[2][6]) >= oldest then return dropped end
    local two = redis.call('XRANGE', seals, '-', '+', 'COUNT', 2)
    if #two < 2 then return dropped end
    redis.call('XTRIM', seals, 'MINID', two[2][1])
  end
  return most
end

-- Remove all state of feeds: held sequences, feeds per origin, seals and heads, checkpoints.
local function feeds_drop(meta, feeds, vectors, prefix)
  local known = redis.call('HKEYS', feeds)
  local own = redis.call('HGET', meta, 'w')
  if own then known[#known + 1] = own end
  for _, feed in ipairs(known) do
    redis.call('DEL', prefix .. feed)
    redis.call('HDEL', meta, 'x' .. feed)
  end
  for _, field in ipairs(redis.call('HKEYS', meta)) do
    if string.sub(field, 1, 1) == 'o' then redis.call('HDEL', meta, field) end
  end
  redis.call('DEL', feeds, vectors)
end
