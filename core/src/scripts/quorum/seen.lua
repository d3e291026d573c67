-- Stands behind a look at the fence: the fence, and the holder as a person may see it. What is no lock ends the script.

-- MGET shows a key of another type as a missing one.
local fence = tonumber(string.match(found[1] or '0', '^(%d+)q?$'))
if not (fence and fence < 2^53 - 1) or not found[1] and redis.call('EXISTS', KEYS[2]) == 1 then
  return { 'conflict', now, 0, redis.call('TYPE', KEYS[2]).ok .. ' at ' .. KEYS[2], -2 }
end

local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'string' and kind ~= 'none' then
  return { 'conflict', now, fence, kind, -2 }
end
-- Another library may have left any number of megabytes there.
local holder = kind == 'string' and redis.call('GETRANGE', KEYS[1], 0, 1023)
local reply = { 'info', now, fence, holder, redis.call('PTTL', KEYS[1]) }

