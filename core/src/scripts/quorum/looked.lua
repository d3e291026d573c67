local found = redis.call('MGET', KEYS[1], KEYS[2])
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

