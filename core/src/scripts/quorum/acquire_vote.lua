proposal = tonumber(proposal)
local is_near = math.abs(proposal - now) <= 1000000 or proposal > fence and proposal <= fence + 1000000
local vote = math.max(is_near and proposal >= 10^15 and proposal or now, fence + 1)
local remaining = tonumber(ARGV[2])
if holder == ARGV[1] then
  -- An acquire that comes late, or twice, may find its own hold extended by now.
  remaining = math.max(remaining, redis.call('PTTL', KEYS[1]))
end
if ours then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', remaining)
elseif not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return { 'conflict', now, fence, redis.call('TYPE', KEYS[1]).ok, -2 }
end
local text = string.format('%.0f', vote) .. (queued and 'q' or '')
redis.call('SET', KEYS[2], text, 'PX', remaining + 7200000)
local reply = { 'vote', now, vote, ARGV[1], remaining }
if waits and queued then
  redis.pcall('ZREM', KEYS[3], entry)
end
if waits and ARGV[7] == '1' then
  enqueued(reply, entry, 0, now)
end
return reply
