local limit, floor = tonumber(ARGV[3] or ''), tonumber(ARGV[4] or '') or 0
local entry, came, adopted = ARGV[5] or '', tonumber(ARGV[6] or '') or 0, ARGV[8] or ''
local outer = string.sub(adopted, 1, 1) == '+' and string.sub(adopted, 2)
local as_marker = ARGV[9] ~= '' and ARGV[9] or nil
local waits, letter, mine = #entry > 1, string.sub(entry, 1, 1), limit and 'permits' or 'read'

