local leaves, kept = ARGV[2] or '', ARGV[3]
local value = redis.call('MGET', KEYS[1])[1]
local owned = owner_of(value) == ARGV[1]

-- The short way: nobody waits.
if owned and leaves == '' and not kept and not shows_waiters(value) then
  redis.call('DEL', KEYS[1])
  return 1
end

