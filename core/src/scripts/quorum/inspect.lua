-- Looks, and changes nothing.
--
-- KEYS     lock, fence, queue, marker
-- ARGV     none
-- returns  {'info', time (µs), fence, holder or nil, remaining (ms)}   -1: no expiry, -2: no lock
--          and then, if there is a queue: how many wait, and the first of them (as in queue.lua)
--          {'conflict', time, fence, what was found, -2}               a key holds what it shouldn't
--          the holder and each waiter are shown up to their first 1,024 bytes
-- always   nothing is written, no expiry moved

local found = redis.call('MGET', KEYS[2])
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

