-- Vouches for a server: it votes at once. Only while no lock may be held.
--
-- KEYS     marker
-- ARGV     number of servers, max_ttl (ms), replid
-- returns  {'ok', time (µs), 0, nil, -2}
--          {'mismatch', time, 0, 'n=… max_ttl=…', -2}   it belongs to another quorum
--          {'conflict', time, 0, what was found, -2}    the marker's key holds something else
-- always   another quorum's marker stays as it is

local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

local marker = read_marker(KEYS[1], now, ARGV[1], ARGV[2])
if type(marker) == 'table' then
  return marker
end

redis.call('SET', KEYS[1], 'n=' .. ARGV[1] .. ' max_ttl=' .. ARGV[2] .. ' run=' .. ARGV[3] .. ' since=0')
return { 'ok', now, 0, false, -2 }
