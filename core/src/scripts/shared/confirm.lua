-- Confirms a hold behind a failover.
--
-- KEYS     lock, clock, marks
-- ARGV     owner, fence, 'read' or 'permits'
-- returns  {'ok', time (µs), fence, owner, remaining (ms)}
--          {'no', time, period of the readers or 0, holder or nil, remaining}   the hold is not inside; others of its kind are no holder
--          {'conflict', time, 0, what was found, -2}                            the lock's key is no string
-- always   the clock gives no fence any more that isn't above ours; nothing else is written

local mine = ARGV[3]

