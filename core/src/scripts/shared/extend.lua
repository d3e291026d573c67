-- Makes at least ttl remain of our hold beside others.
--
-- KEYS     lock, marks
-- ARGV     owner, ttl (ms), fence, 'read' or 'permits'
-- returns  as confirm
-- always   a mark that is gone is not written again, and a gate neither; a reader's period is that of the gate; nothing is shortened

local mine = ARGV[4]

