-- Looks, and changes nothing.
--
-- KEYS     lock, fence, queue, marker
-- ARGV     none
-- returns  {'info', time (µs), fence, holder or nil, remaining (ms)}   -1: no expiry, -2: no lock
--          {'conflict', time, fence, what was found, -2}               a key holds what it shouldn't
-- always   nothing is written, no expiry moved

local found = redis.call('MGET', KEYS[1], KEYS[2])
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

-- MGET shows a key of another type as a missing one.
local fence = tonumber(string.match(found[2] or '0', '^%d+$'))
if not (fence and fence < 2^53 - 1) or not found[2] and redis.call('EXISTS', KEYS[2]) == 1 then
  return { 'conflict', now, 0, redis.call('TYPE', KEYS[2]).ok .. ' at ' .. KEYS[2], -2 }
end

local holder = found[1]
if not holder and redis.call('EXISTS', KEYS[1]) == 1 then
  return { 'conflict', now, fence, redis.call('TYPE', KEYS[1]).ok, -2 }
end
return { 'info', now, fence, holder, redis.call('PTTL', KEYS[1]) }
