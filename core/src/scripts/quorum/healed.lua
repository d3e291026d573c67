-- A claim keeps a free lock for a waiter, and here the lock only looked free.
local is_anothers = holder and holder ~= ARGV[1] and string.sub(holder, 1, 6) ~= 'claim '
if is_anothers or fence > tonumber(ARGV[3]) then
  return { 'no', now, fence, holder and string.sub(holder, 1, 1024), redis.call('PTTL', KEYS[1]) }
end

local remaining = holder == ARGV[1] and redis.call('PTTL', KEYS[1]) or -2
if remaining < tonumber(ARGV[2]) then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  remaining = tonumber(ARGV[2])
end
local attested = ARGV[3]
