-- Stands in the place of the queue and the clock, for a slot that moves to another node: they are other keys. Waiters poll.
--
-- KEYS     lock, marks
-- ARGV     as release
-- returns  as release, without the last fence and the sixth

local function admit() end

local function last_fence()
  return 0
end

