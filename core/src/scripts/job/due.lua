-- Stands before the part of acquire that takes the lock: the last attempt may have died, and the next one may not be due.

if state and owner ~= ARGV[1] then
  local left = not_before - math.floor(now / 1000)
  local is_used_up = attempts >= tonumber(allowed)
  if is_used_up then
    last_error = died(allowed)
    noted('state', 'dead', 'error', last_error, 'died', '1')
    redis.call('PEXPIRE', KEYS[5], redis.call('HGET', KEYS[5], 'retention') or 0)
    return over(now, 'dead', last_error, entry)
  end
  if left > 0 then
    local reply = { 'later', now, fence_of(value), redis.call('HGET', KEYS[5], 'error') or '', left }
    if waits then
      enqueued(reply, entry, came, now)
    end
    return reply
  end
end

