-- Confirms a hold behind a failover.
--
-- KEYS     lock, clock, queue, marker, marks
-- ARGV     owner, fence
-- returns  {'ok', time (µs), fence, owner, remaining (ms)}
--          {'no', time, fence, holder, remaining}          its first 1,024 bytes: the lock is not ours
--          {'conflict', time, fence, what was found, -2}   the lock's key is no string
-- always   whatever the answer is, the clock gives no fence any more that isn't above ours; what remains of the lock stays as it is

