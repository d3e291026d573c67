-- Stands before the parts that change our lock alone.

local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

local holder = redis.call('MGET', KEYS[1])[1]
if not holder and redis.call('EXISTS', KEYS[1]) == 1 then
  return { 'conflict', now, 0, redis.call('TYPE', KEYS[1]).ok, -2 }
end
