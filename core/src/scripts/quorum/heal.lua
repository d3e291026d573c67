-- Writes our lock again on a server that lost it, once a majority confirmed the extension. Never a vote.
--
-- KEYS     lock, fence, queue, marker
-- ARGV     owner, ttl (ms), fence
-- returns  {'ok', time (µs), fence, owner, remaining (ms)}
--          {'no', time, fence, holder, remaining}          its first 1,024 bytes: the lock is another's, or a newer vote was cast
--          {'conflict', time, fence, what was found, -2}   a key holds what it shouldn't
-- always   no holder is overwritten, but a claim is: who waits is not granted what is held; what remains of a lock that is still ours is never shortened; the fence never sinks,
--          and outlives the lock by 2 h;
--          the marker is not asked: this works while the server doesn't vote

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
-- A claim keeps a free lock for a waiter, and here the lock only looked free.
local is_anothers = holder and holder ~= ARGV[1] and string.sub(holder, 1, 6) ~= 'claim '
if is_anothers or fence > tonumber(ARGV[3]) then
  return { 'no', now, fence, holder and string.sub(holder, 1, 1024), redis.call('PTTL', KEYS[1]) }
end

local remaining = holder == ARGV[1] and redis.call('PTTL', KEYS[1]) or -2
if remaining < tonumber(ARGV[2]) then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  remaining = tonumber(ARGV[2])
end
-- PEXPIRE is never refused for lack of memory, and what comes behind it isn't either.
redis.call('PEXPIRE', KEYS[2], remaining + 7200000)
if found[2] ~= ARGV[3] .. mark then
  redis.call('SET', KEYS[2], ARGV[3] .. mark, 'PX', remaining + 7200000)
end
return { 'ok', now, tonumber(ARGV[3]), ARGV[1], remaining }
