-- The lock's value is never read before it is known to be short: another library may have left any number of megabytes there. A value
-- that is longer than what it may be compared with is none of these, also when it is cut.
local value = redis.pcall('GETRANGE', KEYS[1], 0, math.max(1024, #entry + 6))
if type(value) == 'table' then
  if string.sub(value.err, 1, 9) ~= 'WRONGTYPE' then
    return value
  end
  return { 'conflict', now, 0, redis.call('TYPE', KEYS[1]).ok, -2 }
end
-- Nothing is shown of a missing key, and of an empty string.
if value == '' and redis.call('EXISTS', KEYS[1]) == 0 then
  value = false
end
local owner = owner_of(value)
local adopts = owner and owner == adopted and adopted ~= ''
if entry == 'o' and not (owner == ARGV[1] or adopts) then
  return { 'no', now, fence_of(value), shown(value), redis.call('PTTL', KEYS[1]) }
end
local is_queued = redis.call('EXISTS', KEYS[3]) == 1
if is_queued and not value then
  local first, is_next, _, wake = queue()
  local head, _, arrival = first(now)
  -- A notified waiter has left the queue, but names the arrival it had.
  local before = came > 0 and arrival and came < arrival
  if head and head ~= entry and not before and (string.sub(entry, 1, 1) == 'f' or is_next(head, arrival, now)) then
    wake(now, true, true)
    value = redis.call('GET', KEYS[1])
    owner = owner_of(value)
  end
end
if value and not (owner == ARGV[1] or adopts or waits and value == 'claim ' .. entry) then
  local reply = { 'held', now, fence_of(value), shown(value), redis.call('PTTL', KEYS[1]) }
  if waits then
    local _, _, enqueue = queue()
    reply[6], reply[7] = enqueue(entry, came, now)
  end
  return reply
end

