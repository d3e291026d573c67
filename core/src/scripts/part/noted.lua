
-- The end of a script that notes the end of an attempt in the record alone. The lock is released by a script of its own.

if foreign and how ~= 'back' then
  return { 'conflict', now, 0, redis.call('TYPE', KEYS[5]).ok .. ' at ' .. KEYS[5], -2 }
end
if done then
  return { 'ok', now, 0, false, -2 }
end
return { 'no', now, 0, by ~= '' and by ~= ARGV[1] and by, -2 }
