-- Windows in which a repeated (source, id) is recognised: the present one and the previous one.

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
