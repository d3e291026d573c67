-- The lock's value is never read before it is known to be short: another library may have left any number of megabytes there. A value
-- that is longer than what it may be compared with is none of these, also when it is cut.
local value = redis.pcall('GETRANGE', KEYS[1], 0, math.max(1024, #entry + 6))
if type(value) == 'table' then
  if string.sub(value.err, 1, 9) ~= 'WRONGTYPE' then
    return value
  end
  return { 'conflict', now, 0, redis.call('TYPE', KEYS[1]).ok, -2 }
end
-- Nothing is shown of a missing key, and of an empty string.
if value == '' and redis.call('EXISTS', KEYS[1]) == 0 then
  value = false
end
