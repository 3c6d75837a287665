-- Return the time at which the event at an offset was stored. KEYS: log   ARGV: offset   Returns milliseconds, nil if it is not held
local entry = entry_at(KEYS[1], tonumber(ARGV[1]))
return entry and entry_ms(entry) or nil
