-- Takes a free lock and casts a vote for its fence.
--
-- KEYS     lock, fence, queue, marker
-- ARGV     owner, ttl (ms), proposal (µs),
--          on a quorum: number of servers, max_ttl (ms), run id ('?' = unknown),
--          owner to adopt, the waiter that lines up if the lock is another's ('f' = none, but of a fair lock; 'o' = none, and only
--          the owner to adopt counts as free), its arrival (µs, 0 = new), whether others wait behind it (1, or 0);
--          what there is none of is '', or left out at the end
-- returns  {'vote', time (µs), fence, owner, remaining (ms)} the lock is ours here
--          {'held', time, fence, holder, remaining}          it is another's; remaining is -1 without an expiry
--          and after either, if the waiter stands in line: its rank, its arrival
--          {'no', time, fence, holder or nil, remaining}     the owner to adopt, and nothing else, was asked for and isn't there
--          {'quarantine', time, 0, nil, ms until it votes}   this server is new or lost its data
--          {'mismatch', time, 0, 'n=… max_ttl=…', -2}        this server belongs to another quorum
--          {'conflict', time, fence, what was found, -2}     a key holds what it shouldn't
--          what is another's (the holder, the quorum) is shown up to its first 1,024 bytes
-- always   a vote is larger than every fence before it, and never repeated; what remains of our own lock is never shortened;
--          the fence outlives the lock by 24 h, so that a release need not touch it;
--          without a vote nothing changes, but the marker of a server seen anew, and the queue: on a single server a lock
--          that is free is kept for the first waiter, unless anybody may pass it, or the asker came before it

local n, max_ttl, run = ARGV[4] or '', ARGV[5], ARGV[6]
local adopted, entry = ARGV[7] or '', ARGV[8] or ''
local single_server, waits = n == '', #entry > 1

-- On a quorum nobody is kept out by a queue: who isn't in it need not look, and comes once. Who comes again and again doesn't read
-- the lock's value before it knows that there is one: another library may have left any number of megabytes there.
local looks, there = waits or single_server
local found
if looks then
  there = redis.call('EXISTS', KEYS[1], KEYS[3])
end
if single_server then
  found = redis.call('MGET', KEYS[2])
elseif looks then
  found = redis.call('MGET', KEYS[2], KEYS[4])
else
  found = redis.call('MGET', KEYS[2], KEYS[4], KEYS[1])
end
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

-- Nearly always the marker is as this client would write it for a server that votes, and there is nothing to look into.
if not single_server and found[2] ~= 'n=' .. n .. ' max_ttl=' .. max_ttl .. ' run=' .. run .. ' since=0' then
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
  local votes = since + max_ttl * 1000
  if since > 0 and now < votes then
    return { 'quarantine', now, 0, false, math.ceil((votes - now) / 1000) }
  end
end

-- MGET shows a key of another type as a missing one.
local fence = tonumber(string.match(found[1] or '0', '^%d+$'))
if not (fence and fence < 2^53 - 1) or not found[1] and redis.call('EXISTS', KEYS[2]) == 1 then
  return { 'conflict', now, 0, redis.call('TYPE', KEYS[2]).ok .. ' at ' .. KEYS[2], -2 }
end

local holder, queued, is_taken = found[3], false, false
if looks and there > 0 then
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
  queued = there == 2 or not is_taken
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
  local came = tonumber(ARGV[9] or 0)
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
    reply[6], reply[7] = line_up(entry, tonumber(ARGV[9]), now)
  end
  return reply
end

local proposal = tonumber(ARGV[3])
local vote = proposal
if vote > now + 3600000000 or vote < now - 1000000 then
  vote = now
end
if vote <= fence then
  vote = fence + 1
end

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
redis.call('SET', KEYS[2], vote == proposal and ARGV[3] or string.format('%.0f', vote), 'PX', remaining + 86400000)
local reply = { 'vote', now, vote, ARGV[1], remaining }
if waits and queued then
  redis.pcall('ZREM', KEYS[3], entry)
end
if waits and ARGV[10] == '1' then
  local _, _, line_up = queue()
  reply[6], reply[7] = line_up(entry, 0, now)
end
return reply
