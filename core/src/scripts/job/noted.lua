-- Stands behind found: notes in the record how an attempt ends.

local owned = holder == ARGV[1]

-- PEXPIRE is never refused for lack of memory, and what comes behind it isn't either.
local function note(life, ...)
  redis.call('PEXPIRE', KEYS[5], life)
  redis.call('HSET', KEYS[5], ...)
  redis.call('PEXPIRE', KEYS[5], life)
end

-- As long as a record may be kept of an attempt that doesn't end the job.
local function note_open(...)
  note(string.format('%.0f', (tonumber(record[6] or 0) or 0) + 90000000), ...)
end

if owned and not state and not foreign and how ~= 'back' then
  -- The record was evicted or deleted while the attempt ran.
  local number, max, failures, at = string.match(ARGV[7], '^(%d+) (%d+) (%d+) (%d+)$')
  record = { 'running', number, max, ARGV[1], ARGV[3], life, failures }
  state, attempts, by = 'running', tonumber(number), ARGV[1]
  note(life, 'state', state, 'attempts', number, 'max', max, 'by', by, 'fence', ARGV[3], 'retention', life,
    'failures', failures, 'scheduled_time', at)
end

local has_fence = (record[5] or '0') == ARGV[3]
local runs = state == 'running' and by == ARGV[1]
-- A job that another client found dead, because the lease of its last attempt had ended: that one may still say how it ended.
local has_died = state == 'dead' and (record[8] or '') ~= '' and by == ARGV[1]
local is_open = (runs or has_died) and has_fence
local ours = by == ARGV[1] and has_fence
local done, over, retry_in = false, false, 0
if is_open and has_died and how ~= 'back' then
  note(record[6] or 0, 'error', '', 'died', '')
end
if how == 'back' then
  if runs then
    attempts = math.max(attempts - 1, 0)
    note_open('state', attempts > 0 and 'retrying' or 'new', 'attempts', string.format('%.0f', attempts), 'by', '')
  end
  done = owned
elseif foreign then
  done = false
elseif how == 'done' then
  over = is_open
  if is_open then
    note(life, 'state', 'done', 'result', text, 'done_at', string.format('%.0f', now))
  end
  done = is_open or ours and state == 'done'
else
  local failures = string.format('%.0f', (tonumber(record[7] or 0) or 0) + 1)
  if is_open and (delay == '-1' or attempts >= (tonumber(record[3] or 0) or 0)) then
    over = true
    note(record[6] or 0, 'state', 'dead', 'error', text, 'failures', failures)
  elseif is_open then
    retry_in = tonumber(delay)
    note_open('state', 'retrying', 'error', text, 'failures', failures,
      'not_before', string.format('%.0f', math.floor(now / 1000) + retry_in))
  end
  done = is_open or ours and (state == 'retrying' or state == 'dead')
end
