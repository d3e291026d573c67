-- Forgets the record of a job, unless an attempt runs. Its waiters may begin at once then.
--
-- KEYS     lock, fence, queue, marker, record
-- ARGV     none
-- returns  {'ok', time (µs), 0, nil, -2}                       forgotten
--          {'no', time, fence, holder or nil, remaining (ms)}  an attempt runs, or there is no record
--          {'conflict', time, fence, what was found, -2}       a key holds what it shouldn't
--          and after the first, if the next waiter could not be told: the error
-- always   the lock stays as it is

local record = redis.pcall('HMGET', KEYS[5], 'state', 'by')
local found = redis.call('MGET', KEYS[1], KEYS[2])
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

if record.err then
  return { 'conflict', now, 0, redis.call('TYPE', KEYS[5]).ok .. ' at ' .. KEYS[5], -2 }
end
local fence = tonumber(string.match(found[2] or '', '^(%d+)q?$'))
if not fence or fence >= 2^53 - 1 then
  fence = 0
end
local holder = found[1]
-- MGET shows a key of another type as a missing one.
if not holder and redis.call('EXISTS', KEYS[1]) == 1 then
  return { 'conflict', now, fence, redis.call('TYPE', KEYS[1]).ok, -2 }
end
if redis.call('EXISTS', KEYS[5]) == 0 or record[1] == 'running' and holder == record[2] then
  return { 'no', now, fence, holder and string.sub(holder, 1, 1024), redis.call('PTTL', KEYS[1]) }
end
redis.call('DEL', KEYS[5])
local reply = { 'ok', now, 0, false, -2 }
if not holder and redis.call('EXISTS', KEYS[3]) == 1 then
  local _, _, _, wake = queue()
  reply[6] = wake(now, true, false)
end
return reply
