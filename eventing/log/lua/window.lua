-- What appending needs: times of entries, and the windows in which a repeated (source, id) is recognised, the present one
-- and the previous one.

-- The time of the newest entry, for logs of before `u` in their heads. A new entry is never stored with an earlier one: the
-- clock of the server before may have been ahead of this one's.
local function newest_ms(log, next_offset)
  local entry = entry_at(log, next_offset - 1)
  return entry and entry_ms(entry) or 0
end

-- Begin a new window if the present one is over or full; returns how many ids the present one holds. A window's ids live
-- twice the window: at least one window after the last of them was added.
local function window_turn(ids, old_ids, started, now, window_ms, ids_max)
  local remembered = redis.call('HLEN', ids)
  if remembered > 0 and (now - started > window_ms or remembered >= ids_max) then
    if now - started > 2 * window_ms then redis.call('DEL', ids, old_ids) else redis.call('RENAME', ids, old_ids) end
    remembered = 0
  end
  return remembered
end
