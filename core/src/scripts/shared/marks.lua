-- What is done with the marks.

-- The end of a mark that lives, or nothing.
local function living(owner)
  local score = redis.pcall('ZSCORE', marks, owner)
  return type(score) == 'string' and tonumber(score) > ms and tonumber(score) or nil
end

-- Has gate and marks end then. They are there.
local function end_at(ends)
  redis.call('PEXPIREAT', marks, whole(ends))
  redis.call('PEXPIREAT', KEYS[1], whole(ends))
end

-- Has gate and marks last until then at least.
local function last_until(ends)
  if ends >= (last_mark() or 0) then
    end_at(ends)
  end
end

local function drop_ended()
  local ended = redis.pcall('ZRANGEBYSCORE', marks, '-inf', whole(ms), 'LIMIT', 0, 100)
  if ended[1] then
    redis.call('ZREM', marks, unpack(ended))
  end
end

-- What a refusal shows: the period of the gate, who has the lock in place of a hold of the kind `mine`, and what remains.
local function others(value, kind, number, mine)
  return kind == 'read' and number or 0, kind ~= mine and holder_of(value), redis.call('PTTL', KEYS[1])
end

