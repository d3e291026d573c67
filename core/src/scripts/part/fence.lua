-- Raises the fence of a lock that was taken, or shows it: a part of acquire and of inspect, for a slot that moves to another node.
--
-- KEYS     fence
-- ARGV     owner, ttl (ms), the servers' clock as the client knows it (µs, as for acquire), the life of the fence (ms); none to see it
-- returns  {'vote', time (µs), fence, owner, ttl}          raised to this vote
--          {'info', time, fence, nil, -2}                  this is the fence, 0 for none
--          {'conflict', time, 0, what was found, -2}       the key holds what it shouldn't
-- always   a vote is larger than every fence before it, and never repeated; the mark of waiters stays

local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

-- MGET shows a key of another type as a missing one.
local found = redis.call('MGET', KEYS[1])[1]
local digits, mark = string.match(found or '0', '^(%d+)(q?)$')
local fence = tonumber(digits)
if not (fence and fence < 2^53 - 1) or not found and redis.call('EXISTS', KEYS[1]) == 1 then
  return { 'conflict', now, 0, redis.call('TYPE', KEYS[1]).ok .. ' at ' .. KEYS[1], -2 }
end
if not ARGV[1] then
  return { 'info', now, fence, false, -2 }
end
local proposal = tonumber(ARGV[3])
local is_near = math.abs(proposal - now) <= 1000000 or proposal > fence and proposal <= fence + 1000000
local vote = math.max(is_near and proposal >= 10^15 and proposal or now, fence + 1)
redis.call('SET', KEYS[1], string.format('%.0f', vote) .. mark, 'PX', ARGV[4])
return { 'vote', now, vote, ARGV[1], tonumber(ARGV[2]) }
