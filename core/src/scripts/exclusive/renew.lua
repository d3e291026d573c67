-- Makes at least ttl remain of our lock, on a single server: there nobody gets a fence while we have the key.
--
-- KEYS     lock
-- ARGV     owner, ttl (ms), 1 if the time is wanted, else nothing
-- returns  minus the time (µs), or -1   done: no other script answers so
--          0                            the lock is not ours: extend says why
-- always   what remains is never shortened, so that a late heartbeat can't undo a long extension;
--          a missing key is never written again

if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end

-- The option GT came with version 7. It leaves a key without expiry alone; this one gets an expiry.
local is_new = (redis.REDIS_VERSION_NUM or 0) >= 0x00070000
if not (is_new and redis.call('PEXPIRE', KEYS[1], ARGV[2], 'GT') == 1) and redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
if not ARGV[3] then
  return -1
end
local clock = redis.call('TIME')
return -(clock[1] * 1000000 + clock[2])
