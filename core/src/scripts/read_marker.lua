-- Reads the marker for a member of a quorum of n servers; n is 1 with quarantine, nil for a client of one server. Gives the marker
-- (nil: there is none for this client), its replid, since when it counts, and whether it expires: then no server of its quorum has
-- voted so far, and clients of one server ignore it. In place of the marker it gives a refusal.
local function read_marker(key, now, n, max_ttl)
  local marker = redis.pcall('GET', key)
  if not marker then
    return
  end
  local its_n, its_max_ttl, run, since
  if type(marker) == 'string' then
    its_n, its_max_ttl, run, since = string.match(marker .. ' ', '^n=(%d+) max_ttl=(%d+) run=([^ ]+) since=(%d+) ')
    since = tonumber(since)
  end
  if not (since and since < 2^53) then
    return { 'conflict', now, 0, redis.call('TYPE', key).ok .. ' at ' .. key, -2 }
  end
  local left = redis.pcall('PTTL', key)
  local expires = type(left) == 'number' and left >= 0
  if expires and tonumber(its_n) > 1 and (n or '1') == '1' then
    return
  end
  if its_n ~= n or its_max_ttl ~= max_ttl then
    return { 'mismatch', now, 0, string.sub('n=' .. its_n .. ' max_ttl=' .. its_max_ttl, 1, 1024), -2 }
  end
  return marker, run, since, expires
end

