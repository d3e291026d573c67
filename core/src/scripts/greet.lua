-- Asks whether this server belongs to the quorum the client thinks it does, and votes.
--
-- KEYS     marker
-- ARGV     number of servers, max_ttl (ms), replid ('?' = unknown); none from a client of one server
-- returns  {'ok', time (µs), 0, nil, -2, version}            the version as a number, 0 before 7.0
--          {'quarantine', time, 0, nil, ms until it votes}      it is new, or lost its data
--          {'mismatch', time, 0, 'n=… max_ttl=…', -2}           it belongs to another quorum
--          {'conflict', time, 0, what was found, -2}            the marker's key holds something else
-- always   nothing is written, but the expiry of a marker of this quorum that has one: two max_ttl from now

local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

local marker, run, since, expires = read_marker(KEYS[1], now, ARGV[1], ARGV[2])
if type(marker) == 'table' then
  return marker
end
if expires then
  redis.pcall('PEXPIRE', KEYS[1], 2 * ARGV[2])
end
if not ARGV[1] then
  return { 'ok', now, 0, false, -2, redis.REDIS_VERSION_NUM or 0 }
end

if not marker or run ~= ARGV[3] and ARGV[3] ~= '?' or since > now then
  return { 'quarantine', now, 0, false, tonumber(ARGV[2]) }
end
local votes = since + ARGV[2] * 1000
if since > 0 and now < votes then
  return { 'quarantine', now, 0, false, math.ceil((votes - now) / 1000) }
end
return { 'ok', now, 0, false, -2, redis.REDIS_VERSION_NUM or 0 }
