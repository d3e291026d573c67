-- The marks: a sorted set, whose members are owners with the ends of their holds (ms) as scores. One lives until the millisecond of its end,
-- through which the gate lives: PEXPIREAT with the present millisecond would delete the keys.
-- A key of another type shows no mark.

local ms = math.floor(now / 1000)

local function whole(number)
  return string.format('%.0f', number)
end

-- The end of a mark that lives, or nothing.
local function living(owner)
  local score = redis.pcall('ZSCORE', marks, owner)
  return type(score) == 'string' and tonumber(score) > ms and tonumber(score) or nil
end

-- The end and the owner of the last mark to end, if it lives.
local function last_mark()
  local last = redis.pcall('ZREVRANGE', marks, 0, 0, 'WITHSCORES')
  if last[2] and tonumber(last[2]) > ms then
    return tonumber(last[2]), last[1]
  end
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

-- What is shown of a mark, or of the gate if there is none: a refusal never names who asks, whatever another program has written.
local function named(owner, value)
  return string.sub(owner and owner ~= ARGV[1] and owner or value, 1, 1024)
end

-- What a refusal shows: the period of the gate, who has the lock in place of a hold of the kind `mine`, and what remains.
local function others(value, kind, number, mine)
  local holder = value
  if kind == mine then
    holder = false
  elseif kind then
    local _, owner = last_mark()
    holder = named(owner, value)
  else
    holder = shown(value)
  end
  return kind == 'read' and number or 0, holder, redis.call('PTTL', KEYS[1])
end

