-- PEXPIRE is never refused for lack of memory, and what comes behind it isn't either. The option GT came with version 7. It leaves a key
-- without expiry alone; this one gets an expiry.
local is_new = (redis.REDIS_VERSION_NUM or 0) >= 0x00070000
if not (is_new and redis.call('PEXPIRE', KEYS[1], ARGV[2], 'GT') == 1) then
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[2]))))
end
note_fence(value, ARGV[3])
if shows_waiters(value) then
  return { 'ok', now, tonumber(ARGV[3]), ARGV[1], redis.call('PTTL', KEYS[1]), 1 }
end
return -now
