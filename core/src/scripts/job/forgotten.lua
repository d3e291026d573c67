-- The rest of reset.

if redis.call('EXISTS', KEYS[5]) == 0 or record[1] == 'running' and holder == record[2] then
  return { 'no', now, fence, holder_of(value), redis.call('PTTL', KEYS[1]) }
end
redis.call('DEL', KEYS[5])
local reply = { 'ok', now, 0, false, -2 }
if not holder and redis.call('EXISTS', KEYS[3]) == 1 then
  local _, _, _, wake = queue()
  reply[6] = wake(now, true, false)
end
return reply
