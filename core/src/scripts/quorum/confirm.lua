-- Raises the fence to the attested one, where a lower vote was cast.
--
-- KEYS     lock, fence, queue, marker
-- ARGV     owner, fence
-- returns  {'ok', time (µs), fence, owner, remaining (ms)}
--          {'no', time, fence, holder, remaining}          its first 1,024 bytes: the lock is not ours, or a newer vote was cast
--          {'conflict', time, fence, what was found, -2}   a key holds what it shouldn't
-- always   the fence never sinks, and outlives the lock by 2 h; the lock stays as it is

local found = redis.call('MGET', KEYS[1], KEYS[2])
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

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
if holder ~= ARGV[1] or fence > tonumber(ARGV[2]) then
  return { 'no', now, fence, holder and string.sub(holder, 1, 1024), redis.call('PTTL', KEYS[1]) }
end

local remaining = redis.call('PTTL', KEYS[1])
-- PEXPIRE is never refused for lack of memory, and what comes behind it isn't either.
redis.call('PEXPIRE', KEYS[2], math.max(remaining, 0) + 7200000)
if found[2] ~= ARGV[2] .. mark then
  redis.call('SET', KEYS[2], ARGV[2] .. mark, 'PX', math.max(remaining, 0) + 7200000)
end
return { 'ok', now, tonumber(ARGV[2]), holder, remaining }
