-- Looks, and changes nothing.
--
-- KEYS     lock, clock, queue, marker
-- ARGV     none
-- returns  {'info', time (µs), fence, holder or nil, remaining (ms)}   -1: no expiry, -2: no lock; the fence is 0 if the value shows none
--          and then, if there is a queue: how many wait, and the first of them (as in queue.lua)
--          {'conflict', time, fence, what was found, -2}               the lock's key is no string
--          the holder and each waiter are shown up to their first 1,024 bytes
-- always   nothing is written, no expiry moved

