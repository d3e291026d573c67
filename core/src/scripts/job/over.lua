-- Stands before the part of acquire that looks whether the lock is free: no attempt of a job that is over begins.

local record = redis.pcall('HMGET', KEYS[5], 'state', 'attempts', 'max', 'by', 'not_before')
if record.err then
  return { 'conflict', now, 0, redis.call('TYPE', KEYS[5]).ok .. ' at ' .. KEYS[5], -2 }
end
state, attempts, allowed, by = record[1], tonumber(record[2] or 0) or 0, record[3] or allowed, record[4] or ''
not_before = tonumber(record[5] or 0) or 0
if state == 'done' or state == 'dead' then
  return over(now, state, redis.call('HGET', KEYS[5], state == 'done' and 'result' or 'error') or '', entry)
end

