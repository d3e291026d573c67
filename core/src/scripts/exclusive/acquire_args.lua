-- The rest of acquire, behind the queue.

local entry, came, adopted, as_marker = ARGV[4] or '', tonumber(ARGV[5] or '') or 0, ARGV[7] or '', ARGV[8]
local waits = #entry > 1

