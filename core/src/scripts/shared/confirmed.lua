raise(tonumber(ARGV[2]))
local kind, number = gate_of(value)
local ends = living(ARGV[1])
if kind ~= mine or kind == 'read' and number ~= tonumber(ARGV[2]) or not ends then
  return { 'no', now, others(value, kind, number, mine) }
end
return { 'ok', now, tonumber(ARGV[2]), ARGV[1], ends - ms }
