-- PEXPIRE is never refused for lack of memory, and what comes behind it isn't either.
local kept = math.max(remaining, 0) + 7200000
redis.call('PEXPIRE', KEYS[2], kept)
if found[2] ~= attested .. mark then
  redis.call('SET', KEYS[2], attested .. mark, 'PX', kept)
end
return { 'ok', now, tonumber(attested), ARGV[1], remaining }
