-- Stands before extend: a run may take longer than a record is kept.

if owner_of(redis.call('MGET', KEYS[1])[1]) == ARGV[1] then
  local retention = redis.pcall('HGET', KEYS[5], 'retention')
  if type(retention) == 'string' then
    redis.call('PEXPIRE', KEYS[5], string.format('%.0f', ARGV[2] + retention + 90000000))
  end
end

