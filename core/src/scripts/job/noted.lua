-- Stands behind found: notes in the record how an attempt ends.

local owned = holder == ARGV[1]

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
