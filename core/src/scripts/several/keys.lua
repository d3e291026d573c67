
-- The keys of each lock.
local locks = {}
for at = 1, #KEYS / 5 do
  locks[at] = { unpack(KEYS, at * 5 - 4, at * 5) }
end
