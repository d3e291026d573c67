
-- Has the fence show that a client waits.
local function note_waiters()
  local fence = redis.pcall('MGET', KEYS[2])[1]
  if not fence and redis.pcall('EXISTS', KEYS[2]) == 0 then
    redis.pcall('SET', KEYS[2], '0q', 'PX', 7200000)
  elseif fence and string.find(fence, '^%d+$') then
    redis.pcall('SET', KEYS[2], fence .. 'q', 'KEEPTTL')
  end
end

