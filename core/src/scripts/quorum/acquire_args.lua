
-- The rest of acquire, behind the queue: whatever its short way has left.

local entry, came, adopted, as_marker = ARGV[5] or '', tonumber(ARGV[6] or '') or 0, ARGV[8] or '', ARGV[9]
local waits = #entry > 1

