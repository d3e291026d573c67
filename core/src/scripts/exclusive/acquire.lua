-- Takes a free lock and casts a vote for its fence.
--
-- KEYS     lock, fence, queue, marker
-- ARGV     owner, ttl (ms), the client's clock or one more than the last fence it saw (µs),
--          on a quorum: number of servers, max_ttl (ms), run id ('?' = unknown),
--          owner to adopt, the waiter that lines up if the lock is another's ('f' = none, but of a fair lock; 'o' = none, and only
--          the owner to adopt counts as free), its arrival (µs, 0 = new), whether others wait behind it (1, or 0);
--          what there is none of is '', or left out at the end
-- returns  on a single server: the vote                    the lock is ours here
--          on a quorum: time (µs)                            the lock is ours here, and the vote is the client's clock
--          {'vote', time, fence, owner, remaining (ms)}      the lock is ours here, with this vote
--          {'held', time, fence, holder, remaining}          it is another's; remaining is -1 without an expiry
--          and after either, if the waiter stands in line: its rank, its arrival
--          {'no', time, fence, holder or nil, remaining}     the owner to adopt, and nothing else, was asked for and isn't there
--          {'quarantine', time, 0, nil, ms until it votes}   this server is new or lost its data
--          {'mismatch', time, 0, 'n=… max_ttl=…', -2}        this server belongs to another quorum
--          {'conflict', time, fence, what was found, -2}     a key holds what it shouldn't
--          what is another's (the holder, the quorum) is shown up to its first 1,024 bytes
-- always   a vote is larger than every fence before it, and never repeated; what remains of our own lock is never shortened;
--          the fence outlives the lock by a day, and a release need not touch it: it is written to last 27 h longer. On a single
--          server it is counted up for an hour, with the same end, if the ttl is short; then it becomes this server's time
--          without a vote nothing changes, but the marker of a server seen anew, and the queue: on a single server a lock
--          that is free is kept for the first waiter, unless anybody may pass it, or the asker came before it;
--          behind the number of the fence stands a 'q' while somebody may wait

local n, max_ttl, run = ARGV[4] or '', ARGV[5], ARGV[6]
local adopted, entry = ARGV[7] or '', ARGV[8] or ''
local single_server, waits = n == '', #entry > 1

-- The short ways: nobody has the lock, nobody waits, and nothing is odd. Whatever else there is, is left to the rest as it was.
local short = entry ~= 'o' and ARGV[10] ~= '1'
if short and single_server and redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  -- A mark makes the fence something that can't be counted up.
  local vote = redis.pcall('INCR', KEYS[2])
  if type(vote) == 'number' then
    if vote < 2^53 - 1 and (vote > 1 or vote == 1 and redis.call('EXISTS', KEYS[3]) == 0) then
      -- A fence that is new or old, and that of a long lock, gets another end.
      if vote < 10^15 or vote <= ARGV[3] - 3600000000 or #ARGV[2] > 6 then
        local clock = redis.call('TIME')
        vote = math.max(vote, clock[1] * 1000000 + clock[2])
        redis.call('SET', KEYS[2], string.format('%.0f', vote), 'PX', ARGV[2] + 97200000)
      end
      return vote
    end
    redis.call(vote == 1 and 'DEL' or 'DECR', KEYS[2])
  end
  redis.call('DEL', KEYS[1])
end

local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

-- The servers of a quorum should vote alike, so each takes the client's clock if it is near its own. A single one takes its own.
local proposal = single_server and now or tonumber(ARGV[3])
local is_believed = proposal <= now + 1000000 and proposal >= now - 1000000
if not is_believed then
  proposal = now
end

-- The marker as this client would write it for a server that votes.
local votes = single_server or 'n=' .. n .. ' max_ttl=' .. max_ttl .. ' run=' .. run .. ' since=0'

if short and not single_server and is_believed and redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  local found = redis.pcall('MGET', KEYS[2], KEYS[4])
  local fence = found[1]
  local is_new = not fence and redis.pcall('EXISTS', KEYS[2], KEYS[3]) == 0
  if found[2] == votes and (is_new or fence and #fence == 16 and not string.find(fence, '%D') and tonumber(fence) < proposal) then
    redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[2] + 97200000)
    return now
  end
  redis.call('DEL', KEYS[1])
end

local there = redis.call('EXISTS', KEYS[1], KEYS[3])
local found = single_server and redis.call('MGET', KEYS[2]) or redis.call('MGET', KEYS[2], KEYS[4])

if not single_server and found[2] ~= votes then
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
    reply[6], reply[7] = line_up(entry, tonumber(ARGV[9]), now, found[1])
  end
  return reply
end

local vote = math.max(proposal, fence + 1)
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
redis.call('SET', KEYS[2], text, 'PX', remaining + 97200000)
local reply = { 'vote', now, vote, ARGV[1], remaining }
if waits and queued then
  redis.pcall('ZREM', KEYS[3], entry)
end
if waits and ARGV[10] == '1' then
  local _, _, line_up = queue()
  reply[6], reply[7] = line_up(entry, 0, now, text)
end
return reply
