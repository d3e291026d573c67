-- Stands before the part of acquire that looks whether the lock is free: no attempt of a job that is over begins.

local record = redis.pcall('HMGET', KEYS[5], 'state', 'attempts', 'max', 'by', 'not_before', 'scheduled_time', 'failures')
if record.err then
  if string.sub(record.err, 1, 9) ~= 'WRONGTYPE' then
    return record
  end
  return { 'conflict', now, 0, redis.call('TYPE', KEYS[5]).ok .. ' at ' .. KEYS[5], -2 }
end
local ours = allowed
state, attempts, allowed, by = record[1], tonumber(record[2] or 0) or 0, record[3] or allowed, record[4] or ''
not_before, failures = tonumber(record[5] or 0) or 0, tonumber(record[7] or 0) or 0
if at then
  local scheduled, last, now_ms = tonumber(at), tonumber(record[6] or 0) or 0, math.floor(now / 1000)
  if scheduled > now_ms + 300000 then
    return not_begun(now, 'too_early', '')
  elseif scheduled < last then
    return over(now, 'missed', '', entry)
  end
  begins_again = scheduled > last
  if begins_again or not (state == 'done' or state == 'dead') then
    if scheduled + late < now_ms then
      return not_begun(now, 'too_late', '')
    end
    local is_backup = mode == 'w'
    if not begins_again then
      is_backup = tonumber(allowed) > 1
    end
    local value = not is_backup and redis.pcall('GETRANGE', KEYS[1], 0, math.max(1024, #ARGV[1]))
    -- A lock that is kept for a waiter is free soon.
    if type(value) == 'string' and value ~= '' and owner_of(value) ~= ARGV[1] and string.sub(value, 1, 6) ~= 'claim ' then
      return not_begun(now, 'running', '')
    end
  end
  if begins_again then
    if state then
      local error = state == 'retrying' and redis.call('HGET', KEYS[5], 'error') or ''
      if error == '' and (state == 'running' or state == 'retrying') then
        error = died(record[3] or '0')
      end
      earlier = { last, attempts, by, error, redis.call('HGET', KEYS[5], 'retention') or 0 }
    end
    state, attempts, allowed, by, not_before, failures = false, 0, ours, '', 0, 0
  end
end
if state == 'done' or state == 'dead' then
  return over(now, state, redis.call('HGET', KEYS[5], state == 'done' and 'result' or 'error') or '', entry)
end

