
-- The end of begin: counts the attempt that got the lock.
end

local reply = acquire()
if reply[1] == 'vote' then
  if not (state == 'running' and by == ARGV[1]) then
    attempts = attempts + 1
  end
  local function whole(number)
    return string.format('%.0f', number)
  end
  if is_anew then
    redis.call('DEL', KEYS[5])
  end
  noted('state', 'running', 'attempts', whole(attempts), 'max', allowed, 'by', ARGV[1], 'at', whole(reply[2]),
    'fence', whole(reply[3]), 'keep', keep)
  if not_before > 0 then
    noted('not_before', '0')
  end
  if at then
    noted('fire_time', at)
  end
  redis.call('PEXPIRE', KEYS[5], whole(ARGV[2] + keep + 90000000))
  reply[6], reply[7], reply[8], reply[9] = reply[6] or false, reply[7] or false, attempts, tonumber(allowed)
end
return reply
