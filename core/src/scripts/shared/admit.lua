-- Lets waiters in that may enter beside those inside, at most eight, and nobody before the first one. Gives the error if one could not be
-- notified.
local function admit(kind, number)
  if redis.call('EXISTS', KEYS[3]) == 0 then
    return nil
  end
  local first, is_next, _, _, notify, limit_of = queue()
  local failed, is_kept
  for _ = 1, 8 do
    local head, client, arrival = first(now)
    local letter = head and string.sub(head, 1, 1)
    if kind == 'read' and (letter == 'r' or letter == 's') then
      redis.call('ZREM', KEYS[3], head)
      failed = notify(head, client, 'free', CLAIM) or failed
    elseif kind == 'permits' and (letter == 'p' or letter == 'q') then
      local limit = tonumber(limit_of(head) or number)
      if redis.call('ZCOUNT', marks, '(' .. whole(ms), '+inf') >= limit then
        -- Who has one kept may not come.
        return is_kept and notify(head, client, 'next', CLAIM) or failed
      end
      redis.call('ZREM', KEYS[3], head)
      if not is_next(head, arrival, now) then
        failed = notify(head, client, 'free', CLAIM) or failed
        local second, other = first(now)
        return second and notify(second, other, 'next', CLAIM) or failed
      end
      last_until(ms + CLAIM)
      redis.call('ZADD', marks, whole(ms + CLAIM), 'claim ' .. head)
      failed, is_kept = notify(head, client, 'claim', CLAIM) or failed, true
    else
      return failed
    end
  end
  return failed
end

