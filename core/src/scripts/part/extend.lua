
-- Makes at least ttl remain of our lock: extend without the fence, for a slot that moves to another node.
--
-- KEYS     lock
-- ARGV     owner, ttl (ms), fence
-- returns  {'ok', time (µs), fence, owner, remaining (ms)}
--          {'no', time, 0, holder or nil, remaining}       its first 1,024 bytes: the lock is not ours
--          {'conflict', time, 0, what was found, -2}       the key holds what it shouldn't
-- always   what remains is never shortened; a missing key is never written again

local remaining = redis.call('PTTL', KEYS[1])
if holder ~= ARGV[1] then
  return { 'no', now, 0, holder and string.sub(holder, 1, 1024), remaining }
end
-- A key without expiry shows -1: it gets one.
if remaining < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  remaining = tonumber(ARGV[2])
end
return { 'ok', now, tonumber(ARGV[3]), holder, remaining }
