-- Tries commands, to learn which of them the user may not run.
--
-- KEYS     lock, fence, queue, marker, record, of a name that no lock can have
-- ARGV     commands, their words separated by one space; K1 to K5 stand for the keys; W for a waiter's channel beside
--          them; SPUBLISH is PUBLISH before version 7
-- returns  {'info', time (µs), 0, nil, -2}               all of them were run
--          {'info', time, 0, 'number error', -2}         a line for each that failed; the time is 0 if that is unknown
-- always   no lock and no marker is touched: it is for the commands to leave nothing behind

local failed = {}
-- The queue's key ends with `queue`.
local channel = string.sub(KEYS[3], 1, -6) .. 'wake:probe'
for number, command in ipairs(ARGV) do
  local words = {}
  for word in string.gmatch(command, '[^ ]+') do
    words[#words + 1] = word == 'W' and channel or KEYS[tonumber(string.match(word, '^K(%d)$') or 0)] or word
  end
  if words[1] == 'SPUBLISH' and (redis.REDIS_VERSION_NUM or 0) < 0x00070000 then
    words[1] = 'PUBLISH'
  end
  local reply = redis.pcall(unpack(words))
  if type(reply) == 'table' and reply.err then
    failed[#failed + 1] = number .. ' ' .. string.sub(reply.err, 1, 1024)
  end
end

local clock = redis.pcall('TIME')
local now = clock.err and 0 or clock[1] * 1000000 + clock[2]
return { 'info', now, 0, failed[1] and table.concat(failed, '\n') or false, -2 }
