-- The rest of release, behind the queue: whatever its short way has left.

if leaves ~= '' then
  redis.pcall('ZREM', KEYS[3], leaves)
end
-- MGET shows a key of another type as a missing one.
if not value and redis.call('EXISTS', KEYS[1]) == 1 then
  return { 'conflict', now, 0, redis.call('TYPE', KEYS[1]).ok, -2 }
end
local gate, number = gate_of(value)
local freed = owned or leaves ~= '' and value == 'claim ' .. leaves
if freed then
  redis.call('DEL', KEYS[1])
end
if owned and kept then
  -- Behind DEL it isn't refused for lack of memory.
  redis.call('SET', KEYS[1], 'kept ' .. ARGV[1], 'PX', kept)
end

local reply
if owned then
  reply = { 'ok', now, 0, false, -2 }
else
  local holder = not freed and value
  reply = { 'no', now, fence_of(holder), holder_of(holder), redis.call('PTTL', KEYS[1]), false, last_fence() }
end
if (freed or leaves ~= '' and not value) and redis.call('EXISTS', KEYS[3]) == 1 then
  local first, _, _, wake, notify = queue()
  if owned and kept then
    local head, client = first(now)
    reply[6] = head and notify(head, client, 'next', kept) or false
  else
    reply[6] = wake(now, true, false) or false
  end
elseif gate and leaves ~= '' and last_mark() then
  reply[6] = admit(gate, number) or false
end
return reply
