-- The marker, of a quorum's server and of one in quarantine: whether the server votes.

local n, max_ttl, run = string.match(as_marker or '', '^n=(%d+) max_ttl=(%d+) run=([^ ]+) ')

-- A server that became a replica and a primary again closes no connection: it may lack locks, and its marker has the old replid.
-- One that shows no replid before this one has only renamed it.
local own_run = run
if run and run ~= '?' then
  local shown = redis.call('INFO', 'replication')
  own_run = string.match(shown, 'master_replid:(%w+)')
  if own_run ~= run and not string.find(shown, 'master_replid2:0000000000', 1, true) then
    return { 'era', now, 0, false, -2 }
  end
end

if as_marker and redis.call('MGET', KEYS[4])[1] ~= as_marker then
  local marker, its_run, since, expires = read_marker(KEYS[4], now, n, max_ttl)
  if type(marker) == 'table' then
    return marker
  end
  local is_of_this_replid = its_run == run or its_run == own_run
  if not marker or not is_of_this_replid and run ~= '?' or since > now then
    since = string.format('%.0f', now)
    redis.call('SET', KEYS[4], 'n=' .. n .. ' max_ttl=' .. max_ttl .. ' run=' .. own_run .. ' since=' .. since)
    -- Until its first vote it goes by itself. One that has voted, under whatever replid, stays.
    if n ~= '1' and (expires or not marker) then
      redis.call('PEXPIRE', KEYS[4], 2 * max_ttl)
    end
    return { 'quarantine', now, 0, false, tonumber(max_ttl) }
  end
  local ends = since + max_ttl * 1000
  if since > 0 and now < ends then
    if expires then
      redis.call('PEXPIRE', KEYS[4], 2 * max_ttl)
    end
    return { 'quarantine', now, 0, false, math.ceil((ends - now) / 1000) }
  end
  -- From here on an acquire need only compare the marker.
  if since > 0 and is_of_this_replid then
    redis.call('SET', KEYS[4], (string.gsub(marker, ' since=%d+', ' since=0', 1)))
  elseif expires then
    redis.call('SET', KEYS[4], marker)
  end
end

