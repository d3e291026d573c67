-- Ends an attempt: notes in the job's record how, deletes our lock, and notifies the next waiter. The fence stays.
--
-- KEYS     lock, clock, queue, marker, record, marks
-- ARGV     owner, 'done', 'failed' or 'back' (it never happened), fence of the attempt, how long a record that is over is kept (ms),
--          done: the result; failed: the error, failed: when the next attempt may begin (ms), or -1 for never,
--          the attempt: its number, how many are allowed, how many failed before, its scheduled time (ms; 0 for none),
--          the waiter that leaves the queue;
--          what there is none of is '', or left out at the end
-- returns  time (µs)                                           noted that it is done, and nobody waits
--          {'ok', time (µs), 0, nil, -2}                       noted; back: the lock was ours
--          {'no', time, fence, holder or nil, remaining (ms)}  a later attempt has begun, or the job is over; who holds the lock,
--                                                              or began that attempt
--          {'conflict', time, fence, what was found, -2}       a key holds what it shouldn't
--          and after the first two, if the next waiter could not be notified: the error
-- always   only the attempt of this owner and this fence is ended, whether or not its lease has ended;
--          only our own lock is deleted, or what is kept for the waiter that leaves;
--          a record that is gone while the lock is ours is written again

local how, life, text, delay, leaves = ARGV[2], ARGV[4], ARGV[5] or '', ARGV[6] or '', ARGV[8] or ''
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

if leaves ~= '' then
  redis.pcall('ZREM', KEYS[3], leaves)
end
local record = redis.pcall('HMGET', KEYS[5], 'state', 'attempts', 'max', 'by', 'fence', 'retention', 'failures', 'died')
local foreign = record.err
if foreign then
  record = {}
end
local state, attempts, by = record[1], tonumber(record[2] or 0) or 0, record[4] or ''

