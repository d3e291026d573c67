-- Stands behind a look at the lock and the fence. What is neither ends the script.

-- MGET shows a key of another type as a missing one.
local digits, mark = string.match(found[2] or '0', '^(%d+)(q?)$')
local fence = tonumber(digits)
if not (fence and fence < 2^53 - 1) or not found[2] and redis.call('EXISTS', KEYS[2]) == 1 then
  return { 'conflict', now, 0, redis.call('TYPE', KEYS[2]).ok .. ' at ' .. KEYS[2], -2 }
end

local holder = found[1]
if not holder and redis.call('EXISTS', KEYS[1]) == 1 then
  return { 'conflict', now, fence, redis.call('TYPE', KEYS[1]).ok, -2 }
end

