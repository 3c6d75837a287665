-- Fence of a log against servers with another history, and its continuation by one (lineage.py).
--   A server that is promoted or started has a replication id that no server had before. `g` in a log's head is the id of
--   the server that appended to it last. Where it is another one, events that were appended elsewhere may be missing here:
--   before anything is numbered, the log is continued in a new epoch. Offsets go on.

local server -- replication id of this server, which does not change during a call

-- Continue a log in a new epoch if another server appended to it last; return the epoch, nil if it was this one.
-- What is here is what this server's history has: nothing of it waits for replicas of the server before.
-- `root`, `present`, `writer`: e, p and g of its head
local function adopted(meta, root, present, writer, next_offset)
  server = server or string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
  if writer == server then return nil end
  if not writer then -- no server with a fence has appended to it yet
    redis.call('HSET', meta, 'g', server)
    return nil
  end
  local epoch = root .. string.gsub(string.sub(server, 1, 8), '%x', function(digit)
    return string.char(97 + tonumber(digit, 16))
  end)
  local lineage = lineage_with(redis.call('HGET', meta, 'l'), present or root, next_offset - 1)
  redis.call('HSET', meta, 'p', epoch, 'g', server, 'l', lineage)
  redis.call('HDEL', meta, 'h', 'y', 'j')
  return epoch
end
