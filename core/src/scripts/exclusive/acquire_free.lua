local owner = owner_of(value)
local adopts = owner and owner == adopted and adopted ~= ''
if entry == 'o' and not (owner == ARGV[1] or adopts) then
  return { 'no', now, fence_of(value), holder_of(value), redis.call('PTTL', KEYS[1]) }
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
  local reply = { 'held', now, fence_of(value), holder_of(value), redis.call('PTTL', KEYS[1]) }
  if waits then
    enqueued(reply, entry, came, now)
  end
  return reply
end

