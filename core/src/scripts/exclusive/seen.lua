local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'string' and kind ~= 'none' then
  return { 'conflict', now, 0, kind, -2 }
end
-- Another library may have left any number of megabytes there.
local value = kind == 'string' and redis.call('GETRANGE', KEYS[1], 0, 1024)
local fence, holder = fence_of(value), shown(value)

