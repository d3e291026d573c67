-- The marker, of a quorum's server and of one in quarantine: whether the server votes.

local n, max_ttl, run = string.match(as_marker or '', '^n=(%d+) max_ttl=(%d+) run=([^ ]+) ')

-- A server that became a replica and a primary again has closed no connection: it may lack locks, and its marker is of that era, too.
-- One that shows no era before this one has only renamed it.
local own_run = run
if run and run ~= '?' then
  local shown = redis.call('INFO', 'replication')
  own_run = string.match(shown, 'master_replid:(%w+)')
  if own_run ~= run and not string.find(shown, 'master_replid2:0000000000', 1, true) then
    return { 'era', now, 0, false, -2 }
  end
end

local marker = as_marker and redis.call('MGET', KEYS[4])[1]
if as_marker and marker ~= as_marker then
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
  local is_of_this_era = its_run == run or its_run == own_run
  if not marker or not is_of_this_era and run ~= '?' or since > now then
    since = string.format('%.0f', now)
    redis.call('SET', KEYS[4], 'n=' .. n .. ' max_ttl=' .. max_ttl .. ' run=' .. own_run .. ' since=' .. since)
    return { 'quarantine', now, 0, false, tonumber(max_ttl) }
  end
  local ends = since + max_ttl * 1000
  if since > 0 and now < ends then
    return { 'quarantine', now, 0, false, math.ceil((ends - now) / 1000) }
  end
  -- From here on an acquire need only compare the marker.
  if since > 0 and is_of_this_era then
    redis.call('SET', KEYS[4], (string.gsub(marker, ' since=%d+', ' since=0', 1)))
  end
end

