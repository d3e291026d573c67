-- Stands before the part of acquire that takes the lock: the last attempt may have died, and the next one may not be due.

if state and holder ~= ARGV[1] then
  local left = not_before - math.floor(now / 1000)
  local is_used_up = attempts >= tonumber(allowed)
  if (is_used_up or left > 0) and not holder and redis.call('EXISTS', KEYS[1]) == 1 then
    return { 'conflict', now, fence, redis.call('TYPE', KEYS[1]).ok, -2 }
  end
  if is_used_up then
    last_error = died(allowed)
    noted('state', 'dead', 'error', last_error, 'died', '1')
    redis.call('PEXPIRE', KEYS[5], redis.call('HGET', KEYS[5], 'retention') or 0)
    return over(now, 'dead', last_error, entry)
  end
  if left > 0 then
    local reply = { 'later', now, fence, redis.call('HGET', KEYS[5], 'error') or '', left }
    if waits then
      local _, _, line_up = queue()
      reply[6], reply[7] = line_up(entry, came, now, found[1])
    end
    return reply
  end
end

