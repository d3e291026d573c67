local kind, number = gate_of(value)

-- The place of a reader that was handed over, or one beside a reader of the same task, whatever stands in the way.
local downgrades = false
if adopted ~= '' or entry == 'o' then
  local theirs = kind == 'read' and not limit and living(outer or adopted)
  local ours = kind == 'read' and not limit and living(ARGV[1])
  if theirs or ours and not outer then
    -- What is left of the hold that is taken over ends: its new holder knows its own ttl alone.
    local ends = math.max(ours or 0, ms + ARGV[2])
    -- In this order: an emptied set would lose its expiry.
    redis.call('ZADD', marks, whole(ends), ARGV[1])
    if not outer and adopted ~= ARGV[1] then
      redis.call('ZREM', marks, adopted)
    end
    end_at(last_mark())
    local reply = { 'vote', now, number, ARGV[1], ends - ms }
    if waits then
      redis.pcall('ZREM', KEYS[3], entry)
      if ARGV[7] == '1' then
        enqueued(reply, entry, 0, now)
      end
    end
    return reply
  end
  -- A writer's hold becomes a period of readers. Also a server in quarantine does that.
  downgrades = adopted ~= '' and not limit and owner_of(value) == adopted
  if downgrades then
    value, as_marker = false, nil
  elseif entry == 'o' then
    return { 'no', now, others(value, kind, number, mine) }
  end
end

