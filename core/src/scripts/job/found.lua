-- Stands before the part of end, and of reset, that changes something: the holder.

local value = redis.call('MGET', KEYS[1])[1]
-- MGET shows a key of another type as a missing one.
if not value and redis.call('EXISTS', KEYS[1]) == 1 then
  return { 'conflict', now, 0, redis.call('TYPE', KEYS[1]).ok, -2 }
end
local holder, fence = owner_of(value), fence_of(value)

