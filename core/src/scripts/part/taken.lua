
-- Stands before due: the lock is ours. It was ours before if a request comes twice.
local fence, owner = tonumber(ARGV[3]), state == 'running' and by == ARGV[1] and by or ''
local value = false
