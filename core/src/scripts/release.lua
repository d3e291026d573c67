-- Deletes our lock. The fence stays.
--
-- KEYS     lock, fence, queue, marker
-- ARGV     owner
-- returns  {'ok', time (µs), fence, nil, -2}
--          {'no', time, fence, holder or nil, remaining (ms)}   the lock is not ours
--          {'conflict', time, fence, what was found, -2}        the lock key is no string
-- always   only our own lock is deleted, whatever the fence key holds (0 if that is no fence);
--          the fence already outlives the expiry that the lock had by 24 h

local found = redis.call('MGET', KEYS[1], KEYS[2])
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

local fence = tonumber(string.match(found[2] or '', '^%d+$'))
if fence and fence >= 2^53 - 1 then
  fence = nil
end

local holder = found[1]
if holder ~= ARGV[1] then
  -- MGET shows a key of another type as a missing one.
  if not holder and redis.call('EXISTS', KEYS[1]) == 1 then
    return { 'conflict', now, fence or 0, redis.call('TYPE', KEYS[1]).ok, -2 }
  end
  return { 'no', now, fence or 0, holder, redis.call('PTTL', KEYS[1]) }
end

redis.call('DEL', KEYS[1])
return { 'ok', now, fence or 0, false, -2 }
