-- Takes a free lock without a fence: a part of acquire, for a slot that moves to another node. The clock is asked by a script of its own.
--
-- KEYS     lock
-- ARGV     owner, ttl (ms), the waiter ('o' = only the owner to adopt counts as free), owner to adopt;
--          what there is none of is ''
-- returns  {'vote', time (µs), 0, owner, remaining (ms)}   the lock is ours
--          {'held', time, 0, holder, remaining}            its first 1,024 bytes: it is another's
--          {'no', time, 0, holder or nil, remaining}       the owner to adopt isn't there
--          {'conflict', time, 0, what was found, -2}       the key holds what it shouldn't
-- always   what remains of our own lock is never shortened; nobody is enqueued

local entry, adopted = ARGV[3], ARGV[4]
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

-- One byte more than what it may be compared with: a longer value is none of these, also when it is cut.
local holder = redis.pcall('GETRANGE', KEYS[1], 0, math.max(1024, #entry + 6))
if type(holder) == 'table' then
  if string.sub(holder.err, 1, 9) ~= 'WRONGTYPE' then
    return holder
  end
  return { 'conflict', now, 0, redis.call('TYPE', KEYS[1]).ok, -2 }
end
-- Nothing is shown of a missing key, and of an empty string.
holder = (holder ~= '' or redis.call('EXISTS', KEYS[1]) == 1) and holder
local owner = owner_of(holder)
local ours = owner
  and (owner == ARGV[1] or owner == adopted and owner ~= '' or #entry > 1 and holder == 'claim ' .. entry)
if not ours and (holder or entry == 'o') then
  local word = entry == 'o' and 'no' or 'held'
  return { word, now, fence_of(holder), shown(holder), redis.call('PTTL', KEYS[1]) }
end
local remaining = tonumber(ARGV[2])
if owner == ARGV[1] then
  remaining = math.max(remaining, redis.call('PTTL', KEYS[1]))
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', remaining)
return { 'vote', now, 0, ARGV[1], remaining }
