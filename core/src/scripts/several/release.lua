-- Releases several locks, from the last to the first.
--
-- KEYS     of each lock, one behind the other: lock, clock, queue, marker, marks
-- ARGV     as release's
-- returns  what release returns of the first lock

