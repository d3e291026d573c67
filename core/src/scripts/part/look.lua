-- Shows who holds a lock: inspect without the queue, for a slot that moves to another node.
--
-- KEYS     lock
-- returns  {'info', time (µs), fence, holder or nil, remaining (ms)}   its first 1,024 bytes
--          {'conflict', time, 0, what was found, -2}               the key holds what it shouldn't

local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'string' and kind ~= 'none' then
  return { 'conflict', now, 0, kind, -2 }
end
-- Another library may have left any number of megabytes there.
local value = kind == 'string' and redis.call('GETRANGE', KEYS[1], 0, 1024)
return { 'info', now, fence_of(value), shown(value), redis.call('PTTL', KEYS[1]) }
