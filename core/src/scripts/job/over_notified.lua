
-- The same if the job is over. The other waiters are notified, too.
local function over(now, word, text, entry)
  if redis.call('EXISTS', KEYS[3]) == 1 then
    redis.pcall('ZREM', KEYS[3], entry)
    wake_many(now)
  end
  return not_begun(now, word, text)
end
