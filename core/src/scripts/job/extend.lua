-- Stands before extend: a run may take longer than a record is kept.

if redis.pcall('GET', KEYS[1]) == ARGV[1] then
  local keep = redis.pcall('HGET', KEYS[5], 'keep')
  if type(keep) == 'string' then
    redis.call('PEXPIRE', KEYS[5], string.format('%.0f', ARGV[2] + keep + 90000000))
  end
end

