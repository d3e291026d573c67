-- The value of a lock's key: an owner, behind which the scripts write ` fence=<n>` and ` waiters=1`.

-- The owner. A value without an id is one as a whole.
local function owner_of(value)
  local at = value and string.find(value, ' id=', 1, true)
  local after = at and #value >= at + 39 and (string.byte(value, at + 40) or 32)
  return after == 32 and string.sub(value, 1, at + 39) or value
end

-- What stands behind the owner, with a blank at the end.
local function notes_of(value)
  return string.sub(value or '', #(owner_of(value) or '') + 1) .. ' '
end

-- The fence of the hold, 0 if the value shows none.
local function fence_of(value)
  return tonumber(string.match(notes_of(value), ' fence=(%d+) ') or 0)
end

local function shows_waiters(value)
  return string.find(notes_of(value), ' waiters=1 ', 1, true) ~= nil
end

-- The first 1,024 bytes of the owner, which is what a reply shows.
local function shown(value)
  local owner = owner_of(value)
  return owner and string.sub(owner, 1, 1024)
end

-- Whether more may be written behind the value: that of another library is compared as a whole.
local function is_ours(value)
  local owner = owner_of(value)
  return value and #value <= 1024 and (string.sub(value, 1, 4) == 'app=' or string.sub(value, 1, 5) == 'host=')
    and string.sub(owner, -40, -37) == ' id='
end

-- Has the value show that a client waits. Its expiry stays.
local function note_waiters()
  local value = redis.pcall('GETRANGE', KEYS[1], 0, 1024)
  if type(value) == 'string' and is_ours(value) and not shows_waiters(value) then
    redis.pcall('SET', KEYS[1], value .. ' waiters=1', 'KEEPTTL')
  end
end

-- Has the value show the fence, if it shows none.
local function note_fence(value, fence)
  if is_ours(value) and not string.find(notes_of(value), ' fence=%d+ ') then
    redis.call('SET', KEYS[1], value .. ' fence=' .. fence, 'KEEPTTL')
  end
end

