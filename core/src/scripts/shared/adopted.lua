local kind, number = gate_of(value)

-- The place of a reader that was handed over, whatever stands in the way.
if adopted ~= '' or entry == 'o' then
  local ends = kind == 'read' and not limit and math.max(living(adopted) or 0, living(ARGV[1]) or 0) or 0
  if ends > 0 then
    ends = math.max(ends, ms + ARGV[2])
    -- In this order: an emptied set would lose its expiry.
    redis.call('ZADD', marks, whole(ends), ARGV[1])
    if adopted ~= ARGV[1] then
      redis.call('ZREM', marks, adopted)
    end
    last_until(ends)
    return { 'vote', now, number, ARGV[1], ends - ms }
  end
  if entry == 'o' then
    return { 'no', now, others(value, kind, number, mine) }
  end
end

