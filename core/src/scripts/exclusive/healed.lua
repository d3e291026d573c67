raise(tonumber(ARGV[3]))
local remaining = tonumber(ARGV[2])
if owner_of(value) == ARGV[1] then
  remaining = math.max(redis.call('PTTL', KEYS[1]), remaining)
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', remaining))
  note_fence(value, ARGV[3])
elseif value and string.sub(value, 1, 6) ~= 'claim ' then
  return { 'no', now, fence_of(value), shown(value), redis.call('PTTL', KEYS[1]) }
else
  local waiters = redis.call('EXISTS', KEYS[3]) == 1 and ' waiters=1' or ''
  redis.call('SET', KEYS[1], ARGV[1] .. ' fence=' .. ARGV[3] .. waiters, 'PX', remaining)
end
return { 'ok', now, tonumber(ARGV[3]), ARGV[1], remaining }
