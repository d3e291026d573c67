
-- Deletes our lock and notifies nobody: release without the queue, for a slot that moves to another node. Waiters poll.
--
-- KEYS     lock
-- ARGV     owner, the waiter that leaves the queue, for how long the lock is kept from everybody (ms);
--          what there is none of is ''
-- returns  {'ok', time (µs), 0, nil, -2}                   it was ours
--          {'no', time, 0, holder or nil, remaining (ms)}  its first 1,024 bytes: it was not ours
--          {'conflict', time, 0, what was found, -2}       the key holds what it shouldn't
-- always   only our own lock is deleted, or what is kept for the waiter that leaves

local owned = owner_of(holder) == ARGV[1]
if owned or ARGV[2] ~= '' and holder == 'claim ' .. ARGV[2] then
  redis.call('DEL', KEYS[1])
  holder = false
end
if owned and ARGV[3] ~= '' then
  -- Behind DEL it isn't refused for lack of memory.
  redis.call('SET', KEYS[1], 'kept ' .. ARGV[1], 'PX', ARGV[3])
end
if owned then
  return { 'ok', now, 0, false, -2 }
end
return { 'no', now, fence_of(holder), shown(holder), redis.call('PTTL', KEYS[1]) }
