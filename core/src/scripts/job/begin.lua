-- Begins an attempt of a job: takes its lock as acquire does, and counts the attempt.
--
-- KEYS     lock, clock, queue, marker, record, marks
-- ARGV     those of acquire; behind them, at the end: how many attempts are allowed, how long the record is kept (ms),
--          '', or of a job that runs once per scheduled time: the scheduled time (ms), how old it may be (ms), and 'w' if it waits while an
--          earlier one's work runs, else 's', with a blank between them
-- returns  {'vote', time (µs), fence, owner, remaining (ms), rank or nil, arrival or nil, number of the attempt, attempts allowed,
--            attempts that failed before, and of the record that a later scheduled time replaced: {its scheduled time (ms) or 0, its attempts,
--            the owner of the last one, what became of it if it was left unfinished, how long it was kept (ms)}}
--          {'done', time, 0, result, attempts, nil, nil, attempts allowed, owner of the last attempt}
--          {'dead', time, 0, last error, attempts, nil, nil, attempts allowed, owner of the last attempt}
--          {'later', time, fence, last error, ms until the next attempt, and if the waiter is queued: its rank, its arrival}
--          and of a scheduled time, in the form of 'done': {'missed', …} a later one has begun; {'too_late', …}; {'too_early', …};
--          {'running', …} a worker runs it, or an earlier one's work, and this request is not for a backup
--          else as acquire
-- always   the attempts allowed are those of the first request; a request that comes twice counts once;
--          without a vote only an attempt that died is noted: the last one makes the job dead;
--          a scheduled time that is later than all before begins the record again, and no earlier one begins any more

local at, late, mode = string.match(table.remove(ARGV), '^(%d+) (%d+) (%l)$')
local retention, allowed = table.remove(ARGV), table.remove(ARGV)
local state, attempts, by, not_before, failures, last_error, is_later, earlier
