-- Shows who holds a lock: inspect without the queue, for a slot that moves to another node.
--
-- KEYS     lock
-- returns  {'info', time (µs), fence, holder or nil, remaining (ms)}   its first 1,024 bytes
--          {'conflict', time, 0, what was found, -2}               the key holds what it shouldn't

