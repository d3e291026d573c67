-- Stands before the part of end, and of reset, that changes something: the holder, whatever the fence is.

local found = redis.call('MGET', KEYS[1], KEYS[2])
local fence = tonumber(string.match(found[2] or '', '^(%d+)q?$'))
if not fence or fence >= 2^53 - 1 then
  fence = 0
end
local holder = found[1]
-- MGET shows a key of another type as a missing one.
if not holder and redis.call('EXISTS', KEYS[1]) == 1 then
  return { 'conflict', now, fence, redis.call('TYPE', KEYS[1]).ok, -2 }
end

