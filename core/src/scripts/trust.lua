-- Vouches for a server: it votes at once. Only while no lock may be held.
--
-- KEYS     marker
-- ARGV     number of servers, max_ttl (ms), era
-- returns  {'ok', time (µs), 0, nil, -2}
--          {'mismatch', time, 0, 'n=… max_ttl=…', -2}   it belongs to another quorum
--          {'conflict', time, 0, what was found, -2}    the marker's key holds something else
-- always   another quorum's marker stays as it is

local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

local marker = redis.pcall('GET', KEYS[1])
local n, max_ttl, run, since
if type(marker) == 'string' then
  n, max_ttl, run, since = string.match(marker .. ' ', '^n=(%d+) max_ttl=(%d+) run=([^ ]+) since=(%d+) ')
  since = tonumber(since)
end
if marker and not (since and since < 2^53) then
  return { 'conflict', now, 0, redis.call('TYPE', KEYS[1]).ok .. ' at ' .. KEYS[1], -2 }
end
if marker and (n ~= ARGV[1] or max_ttl ~= ARGV[2]) then
  return { 'mismatch', now, 0, string.sub('n=' .. n .. ' max_ttl=' .. max_ttl, 1, 1024), -2 }
end

redis.call('SET', KEYS[1], 'n=' .. ARGV[1] .. ' max_ttl=' .. ARGV[2] .. ' run=' .. ARGV[3] .. ' since=0')
return { 'ok', now, 0, false, -2 }
