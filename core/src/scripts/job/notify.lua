-- Notifies the first waiters of a job that is over: none of them has to wait any longer.
local function wake_many(now)
  local first, _, _, _, notify = queue()
  local failed
  for _ = 1, 8 do
    local head, client = first(now)
    if not head then
      break
    end
    redis.pcall('ZREM', KEYS[3], head)
    failed = notify(head, client, 'free', CLAIM) or failed
  end
  return failed
end

-- Notifies the first waiter of a job when its next attempt may begin (ms).
local function notify_later(now, left)
  local first, _, _, _, notify = queue()
  local head, client = first(now)
  return head and notify(head, client, 'next', string.format('%.0f', left)) or nil
end

