local shown = redis.pcall('ZRANGEBYSCORE', KEYS[3], 0, '+inf', 'LIMIT', 0, 100)
if #shown > 0 then
  local count, alive = redis.call('ZCOUNT', KEYS[3], 0, '+inf'), {}
  for _, entry in ipairs(shown) do
    local life = tonumber(redis.call('ZSCORE', KEYS[3], string.match(entry, '^%a:([^:]*):') or '') or 0)
    if life < 0 and -life >= now then
      alive[#alive + 1] = string.sub(entry, 1, 1024)
    else
      count = count - 1
    end
  end
  reply[6], reply[7] = count, alive
end
return reply
