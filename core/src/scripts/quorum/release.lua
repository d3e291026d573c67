-- Deletes our lock, and notifies the next waiter. The fence stays.
--
-- KEYS     lock, fence, queue, marker
-- ARGV     owner, the waiter that leaves the queue, how long the lock is kept from everybody (ms), instead of being free;
--          what there is none of is '', or left out at the end
-- returns  1                                                   deleted, and nobody waits
--          {'ok', time (µs), 0, nil, -2}                       deleted, or kept: the lock then has a value of its own
--          {'no', time, fence, holder or nil, remaining (ms)}  the lock is not ours; the holder's first 1,024 bytes
--          {'conflict', time, fence, what was found, -2}       the lock key is no string
--          and after the first two, if the next waiter could not be notified: the error
-- always   only our own lock is deleted, or what is kept for the waiter that leaves, whatever the fence key holds (0 if that is
--          no fence); the fence already outlives the expiry that the lock had by two hours;
--          a notification of the leaving waiter is passed on to the next one

local found = redis.call('MGET', KEYS[1], KEYS[2])

-- The short way: without the mark behind the fence, a 'q', nobody waits.
if found[1] == ARGV[1] and (ARGV[2] or '') == '' and not ARGV[3] and found[2] and string.byte(found[2], -1) ~= 113 then
  redis.call('DEL', KEYS[1])
  return 1
end

