-- The gate: what the lock's key holds while several hold the lock at once, `read <period>` or `permits <n>`. It ends with the last mark.
-- The marks, in the last key: a sorted set, whose members are owners with the ends of their holds (ms) as scores. One lives until the
-- millisecond of its end, through which the gate lives: PEXPIREAT with the present millisecond would delete the keys.
-- A key of another type shows no mark.

local marks, ms = KEYS[#KEYS], math.floor(now / 1000)

local function whole(number)
  return string.format('%.0f', number)
end

-- The kind of a gate, and its number; nothing for any other value.
local function gate_of(value)
  local kind, number = string.match(value or '', '^(%l+) (%d+)$')
  if (kind == 'read' or kind == 'permits') and #number <= 16 and tonumber(number) < 2^53 then
    return kind, tonumber(number)
  end
end

-- The end and the owner of the last mark to end, if it lives; and whether there is no mark at all.
local function last_mark()
  local last = redis.pcall('ZREVRANGE', marks, 0, 0, 'WITHSCORES')
  if last[2] and tonumber(last[2]) > ms then
    return tonumber(last[2]), last[1]
  end
  return nil, nil, not last[1] and not last.err
end

-- The first owner among these marks, each with its end, that lives. What is kept for a waiter is shown only if there is nothing else.
local function owner_in(members)
  local kept
  for at = 1, #members, 2 do
    if tonumber(members[at + 1]) > ms then
      if string.sub(members[at], 1, 6) ~= 'claim ' then
        return members[at]
      end
      kept = kept or members[at]
    end
  end
  return kept
end

-- What is shown of a mark, or of the gate if there is none: a refusal never names who asks, whatever another program has written.
local function named(owner, value)
  return string.sub(owner and owner ~= ARGV[1] and owner or value, 1, 1024)
end

-- What is shown of the lock's value: of a gate the mark that ends last.
local function holder_of(value)
  if gate_of(value) then
    return named(owner_in(redis.pcall('ZREVRANGE', marks, 0, 19, 'WITHSCORES')), value)
  end
  return shown(value)
end

