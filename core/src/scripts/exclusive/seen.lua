local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'string' and kind ~= 'none' then
  return { 'conflict', now, 0, kind, -2 }
end
-- Another library may have left any number of megabytes there.
local value = kind == 'string' and redis.call('GETRANGE', KEYS[1], 0, 1024)
local gate, number = gate_of(value)
local fence, holder = gate == 'read' and number or fence_of(value), holder_of(value)

