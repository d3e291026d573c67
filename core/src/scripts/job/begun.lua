
-- The end of begin: counts the attempt that got the lock.

local reply = acquire()
if reply[1] == 'vote' then
  if not (state == 'running' and by == ARGV[1]) then
    attempts = attempts + 1
  end
  local function whole(number)
    return string.format('%.0f', number)
  end
  local done_at = begins_again and redis.call('HGET', KEYS[5], 'done_at')
  if begins_again then
    redis.call('DEL', KEYS[5])
  end
  noted('state', 'running', 'attempts', whole(attempts), 'max', allowed, 'by', ARGV[1], 'at', whole(reply[2]),
    'fence', whole(reply[3]), 'retention', retention)
  if not_before > 0 then
    noted('not_before', '0')
  end
  if at then
    noted('scheduled_time', at)
  end
  if done_at then
    noted('done_at', done_at)
  end
  redis.call('PEXPIRE', KEYS[5], whole(ARGV[2] + retention + 90000000))
  reply[6], reply[7], reply[8], reply[9] = reply[6] or false, reply[7] or false, attempts, tonumber(allowed)
  reply[10], reply[11] = failures, earlier
end
return reply
