
-- The end of a script that forgets the record alone.
--
-- ARGV     the holder of the lock, or ''
local is_held = ARGV[1] ~= ''
if redis.call('EXISTS', KEYS[5]) == 0 or record[1] == 'running' and is_held and ARGV[1] == record[2] then
  return { 'no', now, 0, is_held and ARGV[1], -2 }
end
redis.call('DEL', KEYS[5])
return { 'ok', now, 0, false, -2 }
