-- The rest of release, behind the queue: whatever its short way has left.

local leaves = ARGV[2] or ''
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

local fence = tonumber(string.match(found[2] or '', '^(%d+)q?$'))
if fence and fence >= 2^53 - 1 then
  fence = nil
end

if leaves ~= '' then
  redis.pcall('ZREM', KEYS[3], leaves)
end

local holder = found[1]
local owned = holder == ARGV[1]
-- MGET shows a key of another type as a missing one.
if not holder and redis.call('EXISTS', KEYS[1]) == 1 then
  return { 'conflict', now, fence or 0, redis.call('TYPE', KEYS[1]).ok, -2 }
end
local freed = owned or leaves ~= '' and holder == 'claim ' .. leaves
local kept = owned and ARGV[3]
if freed then
  redis.call('DEL', KEYS[1])
  holder = false
end
if kept then
  -- Behind DEL it isn't refused for lack of memory.
  redis.call('SET', KEYS[1], 'kept ' .. ARGV[1], 'PX', kept)
end

local reply
if owned then
  reply = { 'ok', now, 0, false, -2 }
else
  reply = { 'no', now, fence or 0, holder and string.sub(holder, 1, 1024), redis.call('PTTL', KEYS[1]) }
end
if (freed or leaves ~= '' and not holder) and redis.call('EXISTS', KEYS[3]) == 1 then
  local first, _, _, wake, notify = queue()
  if kept then
    local head, client = first(now)
    reply[6] = head and notify(head, client, 'next', kept) or nil
  else
    reply[6] = wake(now, false, false)
  end
end
return reply
