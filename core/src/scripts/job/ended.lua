
-- The rest of end: frees the lock.

local gate, number = gate_of(value)
local freed = owned or leaves ~= '' and value == 'claim ' .. leaves

if freed then
  redis.call('DEL', KEYS[1])
end
local failed
if (over or freed or leaves ~= '' and not holder) and redis.call('EXISTS', KEYS[3]) == 1 then
  local _, _, _, wake = queue()
  if over then
    failed = wake_many(now)
  elseif retry_in > 0 then
    failed = notify_later(now, retry_in)
  else
    failed = wake(now, true, false)
  end
elseif gate and leaves ~= '' and last_mark() then
  failed = admit(gate, number)
end

if foreign and how ~= 'back' then
  if string.sub(foreign, 1, 9) ~= 'WRONGTYPE' then
    return { err = foreign }
  end
  return { 'conflict', now, fence, redis.call('TYPE', KEYS[5]).ok .. ' at ' .. KEYS[5], -2 }
end
if done then
  return { 'ok', now, 0, false, -2, failed }
end
if holder and not freed then
  return { 'no', now, fence, holder_of(value), redis.call('PTTL', KEYS[1]), failed }
end
return { 'no', now, fence, by ~= '' and by ~= ARGV[1] and by, -2, failed }
