-- Tells the first waiters of a job that is over: none of them has to wait any longer.
local function wake_many(now)
  local first, _, _, _, tell = queue()
  local untold
  for _ = 1, 8 do
    local head, client = first(now)
    if not head then
      break
    end
    redis.pcall('ZREM', KEYS[3], head)
    untold = tell(head, client, 'free', CLAIM) or untold
  end
  return untold
end

-- Tells the first waiter of a job when its next attempt may begin (ms).
local function tell_later(now, left)
  local first, _, _, _, tell = queue()
  local head, client = first(now)
  return head and tell(head, client, 'next', string.format('%.0f', left)) or nil
end

