-- Asks the clock for the fence of a lock that was taken: a part of acquire, for a slot that moves to another node.
--
-- KEYS     clock
-- ARGV     owner, ttl (ms), the fence that the client has seen
-- returns  {'vote', time (µs), fence, owner, ttl}
--          {'conflict', time, 0, what was found, -2}       the key holds what it shouldn't

local KEYS = { KEYS[1], KEYS[1] }
