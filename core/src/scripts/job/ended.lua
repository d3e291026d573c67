-- The rest of end: changes the record, and frees the lock.

local owned = holder == ARGV[1]
local freed = owned or leaves ~= '' and holder == 'claim ' .. leaves

-- PEXPIRE is never refused for lack of memory, and what comes behind it isn't either.
local function note(life, ...)
  redis.call('PEXPIRE', KEYS[5], life)
  redis.call('HSET', KEYS[5], ...)
  redis.call('PEXPIRE', KEYS[5], life)
end

local has_fence = (record[5] or '0') == ARGV[3]
local runs = state == 'running' and by == ARGV[1]
local is_open = runs and has_fence or not state and not foreign and owned
local ours = by == ARGV[1] and has_fence
local done, over, retry_in = false, false, 0
if how == 'back' then
  if runs then
    attempts = math.max(attempts - 1, 0)
    redis.call('HSET', KEYS[5], 'state', attempts > 0 and 'retrying' or 'new', 'attempts', string.format('%.0f', attempts), 'by', '')
  end
  done = owned
elseif foreign then
  done = false
elseif how == 'done' then
  over = is_open
  if is_open then
    note(span, 'state', 'done', 'result', text, 'by', ARGV[1])
  end
  done = is_open or ours and state == 'done'
else
  if is_open and state and attempts >= (tonumber(record[3] or 0) or 0) then
    over = true
    note(record[6] or 0, 'state', 'dead', 'error', text)
  elseif is_open and state then
    retry_in = tonumber(span)
    redis.call('HSET', KEYS[5], 'state', 'retrying', 'error', text,
      'not_before', string.format('%.0f', math.floor(now / 1000) + retry_in))
  end
  done = is_open or ours and (state == 'retrying' or state == 'dead')
end

if freed then
  redis.call('DEL', KEYS[1])
end
local untold
if (over or freed or leaves ~= '' and not holder) and redis.call('EXISTS', KEYS[3]) == 1 then
  local _, _, _, wake = queue()
  if over then
    untold = wake_many(now)
  elseif retry_in > 0 then
    untold = tell_later(now, retry_in)
  else
    untold = wake(now, true, false)
  end
end

if foreign and how ~= 'back' then
  return { 'conflict', now, fence, redis.call('TYPE', KEYS[5]).ok .. ' at ' .. KEYS[5], -2 }
end
if done then
  return { 'ok', now, 0, false, -2, untold }
end
if holder and not freed then
  return { 'no', now, fence, string.sub(holder, 1, 1024), redis.call('PTTL', KEYS[1]), untold }
end
return { 'no', now, fence, by ~= '' and by ~= ARGV[1] and by, -2, untold }
