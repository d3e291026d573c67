-- The lock's value. A key of another type ends the script.
local value = redis.call('MGET', KEYS[1])[1]
if not value and redis.call('EXISTS', KEYS[1]) == 1 then
  return { 'conflict', now, 0, redis.call('TYPE', KEYS[1]).ok, -2 }
end

