-- Forgets the record of a job, unless an attempt runs. Its waiters may begin at once then.
--
-- KEYS     lock, clock, queue, marker, record, marks
-- ARGV     none
-- returns  {'ok', time (µs), 0, nil, -2}                       forgotten
--          {'no', time, fence, holder or nil, remaining (ms)}  an attempt runs, or there is no record
--          {'conflict', time, fence, what was found, -2}       a key holds what it shouldn't
--          and after the first, if the next waiter could not be notified: the error
-- always   the lock stays as it is

local record = redis.pcall('HMGET', KEYS[5], 'state', 'by')
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

if record.err then
  if string.sub(record.err, 1, 9) ~= 'WRONGTYPE' then
    return record
  end
  return { 'conflict', now, 0, redis.call('TYPE', KEYS[5]).ok .. ' at ' .. KEYS[5], -2 }
end

