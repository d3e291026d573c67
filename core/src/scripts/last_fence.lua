-- The last fence that the clock has given; 0 without a clock, or an error that says that it is none. An id beyond the thousand of its
-- millisecond is no fence.
local function last_fence()
  local info = redis.pcall('XINFO', 'STREAM', KEYS[2])
  for at = 1, info.err and 0 or #info, 2 do
    if info[at] == 'last-generated-id' then
      local ms, count = string.match(info[at + 1], '^(%d+)-(%d+)$')
      return ms * 1000 + math.min(count, 999)
    end
  end
  return 0, info.err
end

