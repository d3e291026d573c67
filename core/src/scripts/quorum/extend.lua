-- Makes at least ttl remain of our lock.
--
-- KEYS     lock, fence, queue, marker
-- ARGV     owner, ttl (ms), fence
-- returns  minus the time (µs)                             done: ttl remains
--          {'ok', time, fence, owner, remaining (ms)}      done
--          {'no', time, fence, holder, remaining}          its first 1,024 bytes: the lock is not ours, or a newer vote was cast
--          {'conflict', time, fence, what was found, -2}   a key holds what it shouldn't
-- always   what remains is never shortened, so that a late heartbeat can't undo a long extension;
--          a missing key is never written again; the fence never sinks, and outlives the lock by 2 h

local found = redis.call('MGET', KEYS[1], KEYS[2])
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

-- The short way: the lock is ours, the fence is ours, and nobody waits. The option GT came with version 7.
if found[1] == ARGV[1] and found[2] == ARGV[3] and (redis.REDIS_VERSION_NUM or 0) >= 0x00070000 and tonumber(ARGV[3]) < 2^53 - 1
  and redis.call('PEXPIRE', KEYS[1], ARGV[2], 'GT') == 1 then
  redis.call('PEXPIRE', KEYS[2], ARGV[2] + 7200000)
  return -now
end

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
if holder ~= ARGV[1] or fence > tonumber(ARGV[3]) then
  return { 'no', now, fence, holder and string.sub(holder, 1, 1024), redis.call('PTTL', KEYS[1]) }
end

-- A key without expiry shows -1: it gets one.
local remaining = redis.call('PTTL', KEYS[1])
if remaining < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  remaining = tonumber(ARGV[2])
end
-- PEXPIRE is never refused for lack of memory, and what comes behind it isn't either.
redis.call('PEXPIRE', KEYS[2], remaining + 7200000)
if found[2] ~= ARGV[3] .. mark then
  redis.call('SET', KEYS[2], ARGV[3] .. mark, 'PX', remaining + 7200000)
end
return { 'ok', now, tonumber(ARGV[3]), holder, remaining }
