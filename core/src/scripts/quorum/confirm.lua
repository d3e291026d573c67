-- Raises the fence to the attested one, where a lower vote was cast.
--
-- KEYS     lock, fence, queue, marker
-- ARGV     owner, fence
-- returns  {'ok', time (µs), fence, owner, remaining (ms)}
--          {'no', time, fence, holder, remaining}          its first 1,024 bytes: the lock is not ours, or a newer vote was cast
--          {'conflict', time, fence, what was found, -2}   a key holds what it shouldn't
-- always   the fence never sinks, and outlives the lock by 2 h; the lock stays as it is

