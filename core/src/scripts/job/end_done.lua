-- Stands before end: the short way of work that is done, if nobody waits. Everything else is left to the rest.

if ARGV[2] == 'done' and not ARGV[8] then
  local value = redis.call('MGET', KEYS[1])[1]
  if owner_of(value) == ARGV[1] and not shows_waiters(value) then
    local record = redis.pcall('HMGET', KEYS[5], 'state', 'by', 'fence')
    if record[1] == 'running' and record[2] == ARGV[1] and record[3] == ARGV[3] then
      -- DEL is never refused for lack of memory, and what comes behind it isn't either.
      redis.call('DEL', KEYS[1])
      local clock = redis.call('TIME')
      local time = clock[1] * 1000000 + clock[2]
      redis.call('HSET', KEYS[5], 'state', 'done', 'result', ARGV[5], 'done_at', string.format('%.0f', time))
      redis.call('PEXPIRE', KEYS[5], ARGV[4])
      return time
    end
  end
end
