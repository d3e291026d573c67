
local entry, came = ARGV[4] or '', tonumber(ARGV[5] or '') or 0
local waits = #entry > 1
-- In which queues the waiter is, before the dead are dropped: its client may have been silent. If it is in none, a server has taken it out
-- of the one that it was in: it was notified there.
local stood, was_notified = {}, came > 0
for at, keys in ipairs(waits and locks or {}) do
  stood[at] = type(redis.pcall('ZSCORE', keys[3], entry)) == 'string'
  was_notified = was_notified and not stood[at]
end

for at, keys in ipairs(locks) do
  local refusal = acquire(keys, ARGV, true)
  if refusal then
    -- After any other refusal the waiter gives up, and leaves.
    local is_kept = string.sub(refusal[4] or '', 1, 6) == 'claim '
    for other, others in ipairs(waits and refusal[1] == 'held' and locks or {}) do
      local keeps = is_kept and other < at and redis.pcall('GETRANGE', others[1], 0, #entry + 6) == 'claim ' .. entry
      if other ~= at and not keeps and (was_notified or stood[other]) then
        release(others, { entry, entry })
      end
      -- Others of its client may be there, for which it asks, too: that lives for three seconds more.
      local client = other ~= at and string.match(entry, '^%a:([^:]*):')
      local life = client and '-' .. string.format('%.0f', refusal[2] + 3000000)
      if client and redis.pcall('ZADD', others[3], 'XX', 'CH', life, client) == 1 then
        redis.pcall('PEXPIRE', others[3], 60000)
      end
    end
    if not refusal.err then
      refusal[6], refusal[7], refusal[8], refusal[9] = refusal[6] or false, refusal[7] or false, false, at
    end
    return refusal
  end
end

local fences, first = {}, nil
for at, keys in ipairs(locks) do
  local taken = acquire(keys, ARGV)
  if taken[1] ~= 'vote' then
    -- There is another value in the place of its clock. The locks before it are free again.
    for before = at - 1, 1, -1 do
      release(locks[before], { ARGV[1] })
    end
    taken[6], taken[7], taken[8], taken[9] = taken[6] or false, taken[7] or false, false, at
    return taken
  end
  fences[at], first = taken[3], first or taken
end
first[6], first[7], first[8], first[9] = false, false, false, fences
return first
