-- The clock: a stream without entries, whose ids are the fences of all locks of its slot. They never repeat and never sink.

-- The next fence, above the floor (0: none), as a text; or nothing, and what is there in place of a clock, or an error to return.
local function tick(floor)
  local id = redis.pcall('XADD', KEYS[2], 'MAXLEN', 0, '*', '', '')
  if type(id) == 'table' then
    if string.sub(id.err, 1, 9) ~= 'WRONGTYPE' and not string.find(id.err, 'exhausted', 1, true) then
      -- Before version 7 only an error that ends the script says what it is.
      redis.call('XADD', KEYS[2], 'MAXLEN', 0, '*', '', '')
    end
    return nil, { 'conflict', now, 0, redis.call('TYPE', KEYS[2]).ok .. ' at ' .. KEYS[2], -2 }
  end
  local ms, count = string.match(id, '^(%d+)-(%d+)$')
  ms, count = tonumber(ms), tonumber(count)
  local fence = ms * 1000 + count
  local wanted = fence
  -- A millisecond has a thousand fences.
  if count >= 1000 then
    wanted = (ms + 1) * 1000
  end
  -- A floor of more than an hour above is that of a bad clock, which must not spread.
  if wanted <= floor and floor - wanted <= 3600000000 then
    wanted = floor + 1
  end
  if wanted >= 2^53 - 1 then
    return nil, { 'conflict', now, 0, redis.call('TYPE', KEYS[2]).ok .. ' at ' .. KEYS[2], -2 }
  end
  if wanted ~= fence or count >= 1000 then
    redis.call('XADD', KEYS[2], 'MAXLEN', 0, string.format('%.0f-%.0f', math.floor(wanted / 1000), wanted % 1000), '', '')
  end
  return string.format('%.0f', wanted)
end

