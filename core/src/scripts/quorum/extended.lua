if holder ~= ARGV[1] or fence > tonumber(ARGV[3]) then
  return { 'no', now, fence, holder and string.sub(holder, 1, 1024), redis.call('PTTL', KEYS[1]) }
end

-- A key without expiry shows -1: it gets one.
local remaining = redis.call('PTTL', KEYS[1])
if remaining < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  remaining = tonumber(ARGV[2])
end
local attested = ARGV[3]
