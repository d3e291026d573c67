-- Looks, and changes nothing.
--
-- KEYS     lock, fence, queue, marker
-- ARGV     none
-- returns  {'info', time (µs), fence, holder or nil, remaining (ms)}   -1: no expiry, -2: no lock
--          and then, if there is a queue: how many wait, and the first of them (as in queue.lua)
--          {'conflict', time, fence, what was found, -2}               a key holds what it shouldn't
--          the holder and each waiter are shown up to their first 1,024 bytes
-- always   nothing is written, no expiry moved

local found = redis.call('MGET', KEYS[2])
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

-- MGET shows a key of another type as a missing one.
local fence = tonumber(string.match(found[1] or '0', '^(%d+)q?$'))
if not (fence and fence < 2^53 - 1) or not found[1] and redis.call('EXISTS', KEYS[2]) == 1 then
  return { 'conflict', now, 0, redis.call('TYPE', KEYS[2]).ok .. ' at ' .. KEYS[2], -2 }
end

local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'string' and kind ~= 'none' then
  return { 'conflict', now, fence, kind, -2 }
end
-- Another library may have left any number of megabytes there.
local holder = kind == 'string' and redis.call('GETRANGE', KEYS[1], 0, 1023)

local reply = { 'info', now, fence, holder, redis.call('PTTL', KEYS[1]) }
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
