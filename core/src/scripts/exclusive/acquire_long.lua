-- The rest of acquire, behind the queue: whatever its short way has left.

local n, max_ttl, run = string.match(ARGV[9] or '', '^n=(%d+) max_ttl=(%d+) run=([^ ]+) ')
local entry, came, adopted = ARGV[5] or '', tonumber(ARGV[6] or '') or 0, ARGV[8] or ''
local waits = #entry > 1
-- One with a marker, for quarantine, has no other server beside it either.
single_server = single_server or n == '1'

local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

local there = redis.call('EXISTS', KEYS[1], KEYS[3])
local found = ARGV[9] and redis.call('MGET', KEYS[2], KEYS[4]) or redis.call('MGET', KEYS[2])

if ARGV[9] and found[2] ~= ARGV[9] then
  local marker = found[2]
  local its_n, its_max_ttl, its_run, since
  if marker then
    its_n, its_max_ttl, its_run, since = string.match(marker .. ' ', '^n=(%d+) max_ttl=(%d+) run=([^ ]+) since=(%d+) ')
    since = tonumber(since)
  end
  if marker and not (since and since < 2^53) or not marker and redis.call('EXISTS', KEYS[4]) == 1 then
    return { 'conflict', now, 0, redis.call('TYPE', KEYS[4]).ok .. ' at ' .. KEYS[4], -2 }
  end
  if marker and (its_n ~= n or its_max_ttl ~= max_ttl) then
    return { 'mismatch', now, 0, string.sub('n=' .. its_n .. ' max_ttl=' .. its_max_ttl, 1, 1024), -2 }
  end
  if not marker or its_run ~= run and run ~= '?' or since > now then
    since = string.format('%.0f', now)
    redis.call('SET', KEYS[4], 'n=' .. n .. ' max_ttl=' .. max_ttl .. ' run=' .. run .. ' since=' .. since)
    return { 'quarantine', now, 0, false, tonumber(max_ttl) }
  end
  local ends = since + max_ttl * 1000
  if since > 0 and now < ends then
    return { 'quarantine', now, 0, false, math.ceil((ends - now) / 1000) }
  end
  -- From here on an acquire need only compare the marker.
  if since > 0 and its_run == run then
    redis.call('SET', KEYS[4], (string.gsub(marker, ' since=%d+', ' since=0', 1)))
  end
end

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
if queued and not is_taken and single_server then
  local first, is_next, _, wake = queue()
  local head, _, arrival = first(now)
  -- Who was told has left the queue, but names the arrival it had.
  local before = came > 0 and arrival and came < arrival
  if head and head ~= entry and not before and (string.sub(entry, 1, 1) == 'f' or is_next(head, arrival, now)) then
    wake(now, true, true)
    holder = redis.call('GET', KEYS[1])
  end
end
local ours = holder and (holder == ARGV[1] or holder == adopted and holder ~= '' or waits and holder == 'claim ' .. entry)
if holder and not ours then
  local reply = { 'held', now, fence, string.sub(holder, 1, 1024), redis.call('PTTL', KEYS[1]) }
  if waits then
    local _, _, line_up = queue()
    reply[6], reply[7] = line_up(entry, came, now, found[1])
  end
  return reply
end

proposal = tonumber(proposal)
local is_near = math.abs(proposal - now) <= 1000000 or proposal > fence and proposal <= fence + 1000000
local vote = math.max(is_near and proposal >= 10^15 and proposal or now, fence + 1)
local remaining = tonumber(ARGV[2])
if holder == ARGV[1] then
  -- An acquire that comes late, or twice, may find its own hold extended by now.
  remaining = math.max(remaining, redis.call('PTTL', KEYS[1]))
end
if ours then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', remaining)
elseif not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return { 'conflict', now, fence, redis.call('TYPE', KEYS[1]).ok, -2 }
end
local text = string.format('%.0f', vote) .. (queued and 'q' or '')
redis.call('SET', KEYS[2], text, 'PX', remaining + 90000000)
local reply = { 'vote', now, vote, ARGV[1], remaining }
if waits and queued then
  redis.pcall('ZREM', KEYS[3], entry)
end
if waits and ARGV[7] == '1' then
  local _, _, line_up = queue()
  reply[6], reply[7] = line_up(entry, 0, now, text)
end
return reply
