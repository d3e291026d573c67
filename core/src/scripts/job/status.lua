-- Looks at a job's record, and changes nothing.
--
-- KEYS     lock, clock, queue, marker, record, marks
-- ARGV     none
-- returns  {'record', time (µs), fence, holder or nil, remaining (ms), nil, fields}   -1: no expiry, -2: no lock
--          the fields: state, attempts, max, by, at (µs), error, result, not_before (ms), scheduled_time (ms), done_at (µs), each nil if
--          there is none
--          {'conflict', time, fence, what was found, -2}                              a key holds what it shouldn't
-- always   nothing is written, no expiry moved

local record = redis.pcall('HMGET', KEYS[5], 'state', 'attempts', 'max', 'by', 'at', 'error', 'result', 'not_before',
  'scheduled_time', 'done_at')
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

if record.err then
  if string.sub(record.err, 1, 9) ~= 'WRONGTYPE' then
    return record
  end
  return { 'conflict', now, 0, redis.call('TYPE', KEYS[5]).ok .. ' at ' .. KEYS[5], -2 }
end

