-- In the place of fence.lua in what runs for every event, where no other server can take this one's place.
local function adopted() end
