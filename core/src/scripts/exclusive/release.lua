-- Deletes our lock, and tells the next waiter. The fence stays.
--
-- KEYS     lock, fence, queue, marker
-- ARGV     owner, the waiter that leaves the queue ('' = none), whether it is a single server (1, or 0): then it says who is next
-- returns  1                                                   deleted, and nobody waits
--          {'ok', time (µs), 0, nil, -2}                       deleted
--          {'no', time, fence, holder or nil, remaining (ms)}  the lock is not ours; the holder's first 1,024 bytes
--          {'conflict', time, fence, what was found, -2}       the lock key is no string
--          and after the first two, if the next waiter could not be told: the error
-- always   only our own lock is deleted, or what is kept for the waiter that leaves, whatever the fence key holds (0 if that is
--          no fence); the fence already outlives the expiry that the lock had by a day;
--          what the leaving waiter may have been told is told to the next one

local found = redis.call('MGET', KEYS[1], KEYS[2])

-- The short way: without a mark behind the fence nobody waits.
if found[1] == ARGV[1] and ARGV[2] == '' and found[2] and string.find(found[2], '^%d+$') then
  redis.call('DEL', KEYS[1])
  return 1
end

local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

local fence = tonumber(string.match(found[2] or '', '^(%d+)q?$'))
if fence and fence >= 2^53 - 1 then
  fence = nil
end

if ARGV[2] ~= '' then
  redis.pcall('ZREM', KEYS[3], ARGV[2])
end

local holder = found[1]
local owned = holder == ARGV[1]
-- MGET shows a key of another type as a missing one.
if not holder and redis.call('EXISTS', KEYS[1]) == 1 then
  return { 'conflict', now, fence or 0, redis.call('TYPE', KEYS[1]).ok, -2 }
end
local freed = owned or ARGV[2] ~= '' and holder == 'claim ' .. ARGV[2]
if freed then
  redis.call('DEL', KEYS[1])
  holder = false
end

local reply
if owned then
  reply = { 'ok', now, 0, false, -2 }
else
  reply = { 'no', now, fence or 0, holder and string.sub(holder, 1, 1024), redis.call('PTTL', KEYS[1]) }
end
if (freed or ARGV[2] ~= '' and not holder) and redis.call('EXISTS', KEYS[3]) == 1 then
  local _, _, _, wake = queue()
  reply[6] = wake(now, ARGV[3] == '1', false)
end
return reply
