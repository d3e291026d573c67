local kind, number = gate_of(value)
local all = ARGV[1] == ''
local owned = kind == mine and (all or living(ARGV[1]))
if all and owned then
  clear()
else
  redis.pcall('ZREM', marks, ARGV[1])
end
local freed = kind and leaves ~= '' and redis.pcall('ZREM', marks, 'claim ' .. leaves) == 1
local reply
if owned then
  reply = { 'ok', now, 0, false, -2 }
else
  local claimed = leaves ~= '' and value == 'claim ' .. leaves
  local period, holder, left = others(not claimed and value, kind, number, mine)
  if claimed then
    left = -2
  end
  reply = { 'no', now, period, holder, left, false, last_fence() }
end
if kind then
  if owned or freed or leaves ~= '' then
    drop_ended()
    local last = last_mark()
    if last then
      if owned or freed then
        end_at(last)
      end
      if kind == 'permits' or leaves ~= '' then
        reply[6] = admit(kind, number) or false
      end
    elseif owned or freed then
      redis.call('DEL', KEYS[1])
      clear()
      local _, _, _, wake = queue()
      reply[6] = wake(now, true, false) or false
    end
  end
elseif leaves ~= '' and (not value or value == 'claim ' .. leaves) then
  redis.call('DEL', KEYS[1])
  local _, _, _, wake = queue()
  reply[6] = wake(now, true, false) or false
end
return reply
