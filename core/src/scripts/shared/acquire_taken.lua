local fence = number
if not (last and kind == 'read') then
  local is_foreign = not (last or is_bare) and redis.call('EXISTS', marks) == 1 and redis.call('TYPE', marks).ok
  if is_foreign and is_foreign ~= 'zset' then
    return { 'conflict', now, 0, is_foreign .. ' at ' .. marks, -2 }
  end
  local given, broken = tick(floor)
  if not given then
    return broken
  end
  fence = tonumber(given)
end
local ends = math.max(known or 0, ms + ARGV[2])
if last then
  drop_ended()
  redis.call('ZADD', marks, whole(ends), ARGV[1])
  if claim then
    redis.call('ZREM', marks, claim)
    end_at(last_mark())
  elseif ends >= last then
    end_at(ends)
  end
  if limit and limit ~= number then
    redis.call('SET', KEYS[1], 'permits ' .. whole(limit), 'KEEPTTL')
  end
else
  if not is_bare then
    redis.call('DEL', marks)
  end
  redis.call('ZADD', marks, whole(ends), ARGV[1])
  redis.call('PEXPIREAT', marks, whole(ends))
  redis.call('SET', KEYS[1], mine .. ' ' .. whole(limit or fence), 'PXAT', whole(ends))
end
local reply = { 'vote', now, fence, ARGV[1], ends - ms }
if not is_bare then
  if waits then
    redis.pcall('ZREM', KEYS[3], entry)
  end
  admit(mine, limit)
end
if waits and ARGV[7] == '1' then
  enqueued(reply, entry, 0, now)
end
return with_limit(reply)
