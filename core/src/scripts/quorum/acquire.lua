-- Takes a free lock and casts a vote for its fence.
--
-- KEYS     lock, fence, queue, marker
-- ARGV     owner, ttl (ms), the servers' clock as the client knows it, or one more than the last fence it saw (µs, 0 = none of 16
--          digits below 2^53),
--          the life of the fence (ms: ttl and 2 h),
--          the waiter to enqueue if the lock is another's ('f' = none, but of a fair lock; 'o' = none, and only the owner to
--          adopt counts as free), its arrival (µs, 0 = new), whether others wait behind it (1, or 0), owner to adopt,
--          the marker as this client would write it for a server that votes ('?' = unknown replid);
--          what there is none of is '', or left out at the end
-- returns  time (µs), or 0                                   the lock is ours here, and the vote is the proposal
--          {'vote', time, fence, owner, remaining (ms)}      the lock is ours here, with this vote
--          {'held', time, fence, holder, remaining}          it is another's; remaining is -1 without an expiry
--          and after either, if the waiter is in the queue: its rank, its arrival
--          {'no', time, fence, holder or nil, remaining}     the owner to adopt, and nothing else, was asked for and isn't there
--          {'quarantine', time, 0, nil, ms until it votes}   this server is new or lost its data
--          {'era', time, 0, nil, -2}                         the server's replid is not the one of the request
--          {'mismatch', time, 0, 'n=… max_ttl=…', -2}        this server belongs to another quorum
--          {'conflict', time, fence, what was found, -2}     a key holds what it shouldn't
--          what is another's (the holder, the quorum) is shown up to its first 1,024 bytes
-- always   a vote is larger than every fence before it, and never repeated; what remains of our own lock is never shortened;
--          the fence outlives the lock by two hours, and a release need not touch it;
--          the proposal is believed if it is at most a second more than the fence, or at most a second off this server's
--          without a vote nothing changes, but the marker of a new server, and the queue;
--          behind the number of the fence stands a 'q' while a client may wait

-- The short way: nobody has the lock, nobody waits, and nothing is unusual. Everything else is left to the rest as it was. It stands
-- before everything that only the rest needs.
local proposal = ARGV[3]
if ARGV[5] ~= 'o' and ARGV[7] ~= '1' and #proposal == 16 and redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  local found = redis.pcall('MGET', KEYS[2], KEYS[4])
  local run, fence, now = string.match(ARGV[9] or '', ' run=([^ ]+)'), found[1], nil
  local votes = found[2] == ARGV[9]
    and (run == '?' or string.find(tostring(redis.pcall('INFO', 'replication')), 'master_replid:' .. run, 1, true))
  -- A mark makes the fence longer than 16 digits. MGET shows a key of another type as a missing one.
  local is_older = votes and fence and #fence == 16 and fence < proposal
  if is_older and proposal - (tonumber(fence) or 0) <= 1000000 then
    now = 0
  elseif is_older and not string.find(fence, '%D')
    or votes and not fence and redis.pcall('EXISTS', KEYS[3], KEYS[2]) == 0 then
    local clock = redis.call('TIME')
    local time = clock[1] * 1000000 + clock[2]
    now = math.abs(time - proposal) <= 1000000 and time
  end
  if now then
    redis.call('SET', KEYS[2], proposal, 'PX', ARGV[4])
    return now
  end
  redis.call('DEL', KEYS[1])
end
