local kind, number = gate_of(value)
local ends = living(ARGV[1])
if kind ~= mine or kind == 'read' and number ~= tonumber(ARGV[3]) or not ends then
  return { 'no', now, others(value, kind, number, mine) }
end
ends = math.max(ends, ms + ARGV[2])
local last = last_mark()
if ends >= last then
  end_at(ends)
else
  -- First, and always: version 6.2 without memory refuses a script that begins with ZADD.
  redis.call('PEXPIREAT', marks, whole(last))
end
redis.call('ZADD', marks, 'XX', whole(ends), ARGV[1])
return { 'ok', now, tonumber(ARGV[3]), ARGV[1], ends - ms }
