-- Deletes the lock's key if it has this value: what DELIFEQ does since Valkey 9.0, and DELEX since Redis 8.4.
--
-- KEYS     lock
-- ARGV     the whole value, with what stands behind the owner
-- returns  1 deleted, 0 another value or none
return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0
