local fence, broken = tick(tonumber(ARGV[3]) or 0)
if not fence then
  return broken
end
local remaining = tonumber(ARGV[2])
if owner == ARGV[1] then
  -- An acquire that comes late, or twice, may find its own hold extended by now.
  remaining = math.max(remaining, redis.call('PTTL', KEYS[1]))
end
if is_queued then
  if waits then
    redis.pcall('ZREM', KEYS[3], entry)
  end
  -- Who has died is gone by now.
  is_queued = redis.call('EXISTS', KEYS[3]) == 1
end
redis.call('SET', KEYS[1], ARGV[1] .. ' fence=' .. fence .. (is_queued and ' waiters=1' or ''), 'PX', remaining)
local reply = { 'vote', now, tonumber(fence), ARGV[1], remaining }
if waits and ARGV[6] == '1' then
  enqueued(reply, entry, 0, now)
end
return reply
