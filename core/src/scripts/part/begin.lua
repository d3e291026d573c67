
-- Counts the attempt of a job whose lock was taken and whose fence was raised: a part of begin.
--
-- KEYS     record
-- ARGV     owner, ttl (ms), fence; behind them those of begin's end: how many attempts are allowed, how long the record is kept (ms),
--          '' or the scheduled time with what belongs to it
-- returns  as begin; without a vote the lock that was taken has to be released

local at, late, mode = string.match(table.remove(ARGV), '^(%d+) (%d+) (%l)$')
local retention, allowed = table.remove(ARGV), table.remove(ARGV)
local state, attempts, by, not_before, failures, last_error, begins_again, earlier
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
