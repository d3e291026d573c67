
-- Stands behind the arguments of begin, and of the part of it that has the record alone.

local function noted(...)
  redis.call('HSET', KEYS[5], ...)
end

-- What there is to say of a last attempt that did not end.
local function died(max)
  return string.format('attempt %.0f of %s: its worker died or lost the lease (%s)', attempts, max, by)
end

-- The end of the script for a client that can't begin an attempt.
local function not_begun(now, word, text)
  return { word, now, 0, text, attempts, false, false, tonumber(allowed), by }
end
