-- Takes our mark out, and lets in who may enter then.
--
-- KEYS     lock, clock, queue, marker, marks
-- ARGV     owner ('' = of everybody inside), the waiter that leaves the queue or '', 'read' or 'permits'
-- returns  {'ok', time (µs), 0, nil, -2}                                   our mark is out
--          {'no', time, period of the readers or 0, holder or nil, remaining (ms), nil, last}   the hold was not inside; last is the last
--                                                                          fence that the clock has given, 0 if that isn't known
--          {'conflict', time, 0, what was found, -2}                       the lock's key is no string
--          the sixth of 'ok' and 'no' is the error if a waiter could not be notified
-- always   the gate ends with the last mark that is left; without one the lock is free;
--          what the leaving waiter may have been let in for is given to the next one

-- Takes every mark out. A key of another type stays.
local function clear()
  if redis.call('TYPE', KEYS[#KEYS]).ok == 'zset' then
    redis.call('DEL', KEYS[#KEYS])
  end
end

local leaves, mine = ARGV[2], ARGV[3]
if leaves ~= '' and KEYS[3] then
  redis.pcall('ZREM', KEYS[3], leaves)
end

