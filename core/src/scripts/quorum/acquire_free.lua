local there = redis.call('EXISTS', KEYS[1], KEYS[3])
local found = redis.call('MGET', KEYS[2])

-- MGET shows a key of another type as a missing one.
local digits, mark = string.match(found[1] or '0', '^(%d+)(q?)$')
local fence = tonumber(digits)
if not (fence and fence < 2^53 - 1) or not found[1] and redis.call('EXISTS', KEYS[2]) == 1 then
  return { 'conflict', now, 0, redis.call('TYPE', KEYS[2]).ok .. ' at ' .. KEYS[2], -2 }
end

-- The lock's value is never read before it is known to be short: another library may have left any number of megabytes there.
local holder, queued, is_taken = false, false, false
if there > 0 then
  -- One byte more than what it may be compared with: a longer value is none of these, also when it is cut.
  holder = redis.pcall('GETRANGE', KEYS[1], 0, math.max(1024, #ARGV[1], #adopted, #entry + 6))
  if type(holder) == 'table' then
    if string.sub(holder.err, 1, 9) ~= 'WRONGTYPE' then
      return holder
    end
    holder, is_taken = false, true
  else
    -- Nothing is shown of a missing key, and of an empty string.
    is_taken = holder ~= '' or redis.call('EXISTS', KEYS[1]) == 1
    holder = is_taken and holder
  end
  -- Nobody waits for a free lock without the mark in its fence.
  queued = there == 2 or not is_taken and not (found[1] and mark == '')
end
if entry == 'o' and not (holder and (holder == ARGV[1] or holder == adopted and holder ~= '')) then
  if not holder and redis.call('EXISTS', KEYS[1]) == 1 then
    return { 'conflict', now, fence, redis.call('TYPE', KEYS[1]).ok, -2 }
  end
  return { 'no', now, fence, holder and string.sub(holder, 1, 1024) or false, redis.call('PTTL', KEYS[1]) }
end
local ours = holder and (holder == ARGV[1] or holder == adopted and holder ~= '')
if holder and not ours then
  local reply = { 'held', now, fence, string.sub(holder, 1, 1024), redis.call('PTTL', KEYS[1]) }
  if waits then
    enqueued(reply, entry, came, now)
  end
  return reply
end

