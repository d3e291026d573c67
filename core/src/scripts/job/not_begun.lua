
-- Stands behind the arguments of begin, and of the part of it that has the record alone.

local function noted(...)
  redis.call('HSET', KEYS[5], ...)
end

-- The end of the script for whoever can't begin an attempt.
local function not_begun(now, word, text)
  return { word, now, 0, text, attempts, false, false, tonumber(allowed), by }
end
