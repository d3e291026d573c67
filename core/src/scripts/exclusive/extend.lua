-- Makes at least ttl remain of our lock.
--
-- KEYS     lock
-- ARGV     owner, ttl (ms), fence
-- returns  minus the time (µs)                             done
--          {'no', time, fence, holder, remaining (ms)}     its first 1,024 bytes: the lock is not ours
--          {'conflict', time, fence, what was found, -2}   the key is no string
-- always   what remains is never shortened, so that a late heartbeat can't undo a long extension;
--          a missing key is never written again; the value shows the fence afterwards

