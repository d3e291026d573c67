local reply = { 'info', now, fence, holder, redis.call('PTTL', KEYS[1]) }
if gate then
  local first = redis.pcall('ZRANGEBYSCORE', marks, '(' .. whole(ms), '+inf', 'LIMIT', 0, 100)
  if #first > 0 then
    local all, owners = redis.call('ZCOUNT', marks, '(' .. whole(ms), '+inf'), {}
    local holders = all
    for _, owner in ipairs(first) do
      if string.sub(owner, 1, 6) == 'claim ' then
        holders = holders - 1
      else
        owners[#owners + 1] = string.sub(owner, 1, 1024)
      end
    end
    reply[6], reply[7], reply[8], reply[9] = false, false, holders, owners
    reply[10] = gate == 'permits' and math.max(number - all, 0)
  end
end
