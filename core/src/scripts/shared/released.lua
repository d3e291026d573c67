-- The lock is free.
local function free()
  redis.call('DEL', KEYS[1])
  if KEYS[3] and redis.call('EXISTS', KEYS[3]) == 1 then
    local _, _, _, wake = queue()
    return wake(now, true, false) or false
  end
  return false
end

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
    local last, _, is_empty = last_mark()
    if last then
      drop_ended()
      if owned or freed then
        end_at(last)
      end
      if kind == 'permits' or leaves ~= '' then
        reply[6] = admit(kind, number) or false
      end
    elseif owned or freed then
      if not is_empty then
        clear()
      end
      reply[6] = free()
    else
      drop_ended()
    end
  end
elseif leaves ~= '' and (not value or value == 'claim ' .. leaves) then
  reply[6] = free()
end
return reply
