-- Takes a free lock and casts a vote for its fence.
--
-- KEYS     lock, fence, queue, marker
-- ARGV     owner, ttl (ms), the client's clock or one more than the last fence it saw (µs),
--          the waiter that lines up if the lock is another's ('f' = none, but of a fair lock; 'o' = none, and only the owner to
--          adopt counts as free), its arrival (µs, 0 = new), whether others wait behind it (1, or 0),
--          owner to adopt,
--          on a quorum: the marker as this client would write it for a server that votes ('?' = unknown run id);
--          what there is none of is '', or left out at the end
-- returns  on a single server: the vote                    the lock is ours here
--          on a quorum: time (µs), or 0                      the lock is ours here, and the vote is the client's clock
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
--          server it is counted up within a second of the client's clock, with the same end, if the ttl is short; otherwise it
--          becomes this server's time
--          without a vote nothing changes, but the marker of a server seen anew, and the queue: on a single server a lock
--          that is free is kept for the first waiter, unless anybody may pass it, or the asker came before it;
--          behind the number of the fence stands a 'q' while somebody may wait

-- The short ways: nobody has the lock, nobody waits, and nothing is odd. Whatever else there is, is left to the rest as it was. They
-- stand before everything that only the rest needs.
local single_server = not ARGV[8]
local short = ARGV[4] ~= 'o' and ARGV[6] ~= '1'
if short and single_server and redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  -- A mark makes the fence something that can't be counted up.
  local vote = redis.pcall('INCR', KEYS[2])
  if type(vote) == 'number' then
    if vote < 2^53 - 1 and (vote > 1 or vote == 1 and redis.call('EXISTS', KEYS[3]) == 0) then
      -- A fence that is new or old, and that of a long lock, becomes the time, and gets another end.
      if vote < 10^15 or math.abs(vote - ARGV[3]) > 1000000 or #ARGV[2] > 6 then
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

-- The servers of a quorum should vote alike, so each takes the client's clock if it is near: behind the fence, or beside the clock of
-- the server.
local proposal = tonumber(ARGV[3])
if short and not single_server and redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  local found = redis.pcall('MGET', KEYS[2], KEYS[4])
  local text = found[1]
  local fence = text and #text == 16 and not string.find(text, '%D') and tonumber(text)
  if found[2] == ARGV[8] and (fence and fence < proposal or not text and redis.pcall('EXISTS', KEYS[2], KEYS[3]) == 0) then
    local now, is_near = 0, fence and fence >= 10^15 and proposal <= fence + 1000000
    if not is_near then
      local clock = redis.call('TIME')
      now = clock[1] * 1000000 + clock[2]
      is_near = proposal <= now + 1000000 and proposal >= now - 1000000
    end
    if is_near then
      redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[2] + 97200000)
      return now
    end
  end
  redis.call('DEL', KEYS[1])
end

