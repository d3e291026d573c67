if holder ~= ARGV[1] or fence > tonumber(ARGV[2]) then
  return { 'no', now, fence, holder and string.sub(holder, 1, 1024), redis.call('PTTL', KEYS[1]) }
end

local remaining = redis.call('PTTL', KEYS[1])
local attested = ARGV[2]
