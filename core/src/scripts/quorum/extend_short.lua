-- The short way: the lock is ours, the fence is ours, and nobody waits. The option GT came with version 7.
if found[1] == ARGV[1] and found[2] == ARGV[3] and (redis.REDIS_VERSION_NUM or 0) >= 0x00070000 and tonumber(ARGV[3]) < 2^53 - 1
  and redis.call('PEXPIRE', KEYS[1], ARGV[2], 'GT') == 1 then
  redis.call('PEXPIRE', KEYS[2], ARGV[2] + 7200000)
  return -now
end

