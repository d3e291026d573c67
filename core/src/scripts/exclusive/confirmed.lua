note_fence(value, ARGV[2])
return { 'ok', now, tonumber(ARGV[2]), ARGV[1], redis.call('PTTL', KEYS[1]) }
