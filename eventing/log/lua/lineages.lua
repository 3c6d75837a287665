-- Lineage of a log, l in its head: the epochs that it continues with their offsets, each EPOCH:LAST.
local EPOCHS_MAX = 64 -- remembered per log; a cursor of an older one is answered as one of an unknown epoch

-- Return the text of a lineage with one epoch more, and the offset of its last event.
local function lineage_with(text, epoch, last)
  local lineage = {}
  for one in string.gmatch(text or '', '%S+') do lineage[#lineage + 1] = one end
  lineage[#lineage + 1] = epoch .. ':' .. int(last)
  while #lineage > EPOCHS_MAX do table.remove(lineage, 1) end
  return table.concat(lineage, ' ')
end

-- Return the offset up to which the log continues an earlier epoch, nil if it does not.
local function lineage_end(text, epoch)
  for of, last in string.gmatch(text or '', '([^%s:]+):(%d+)') do
    if of == epoch then return tonumber(last) end
  end
end
