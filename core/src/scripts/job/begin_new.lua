-- Stands before begin: the short way of a job that nobody has begun, or of one that is forgotten. Everything else is left to the rest.

local last = #ARGV
if last < 12 and ARGV[last] == '' and ARGV[7] ~= '1' and #ARGV[3] == 16
  and redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[3], KEYS[5]) == 0 then
  local clock = redis.call('TIME')
  local time = clock[1] * 1000000 + clock[2]
  if math.abs(time - ARGV[3]) <= 1000000 then
    redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
    redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
    redis.call('HSET', KEYS[5], 'state', 'running', 'attempts', '1', 'max', ARGV[last - 2], 'by', ARGV[1],
      'at', time, 'fence', ARGV[3], 'retention', ARGV[last - 1])
    redis.call('PEXPIRE', KEYS[5], ARGV[4] + ARGV[last - 1])
    return time
  end
end

