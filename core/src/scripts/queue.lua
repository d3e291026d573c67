-- The queue of waiters: stands before the part of a script that serves it.
--
-- KEYS[3] is a sorted set. A waiter is a member '<mode>:<client>:<number> <who>' with its arrival (µs, the server's clock) as score. The mode
-- is 'b', or 'f' of a fair one; of a reader 'r' or 's', of who wants a permit 'p' or 'q'. A client lives until the time that its member
-- '<client>' has, negated, as score.
-- A notified waiter leaves the queue; if it comes too late it is enqueued again, at the arrival that it was given and names.
-- The functions are made only where there is a waiter to serve: a lock that nobody waits for pays nothing for them.
-- Everything here goes through pcall: a queue that can't be served never hides what happened to the lock.

-- A notified waiter has so long (ms), until the next one may come; a client lives so long (ms) after its last sign.
local CLAIM, ALIVE = 200, 3000

-- A script drops so many dead waiters at once, so many times; and a waiter that is enqueued drops so many dead clients.
local BATCH, BATCHES, CLIENTS = 100, 3, 10

local function queue()
  local function number(n)
    return string.format('%.0f', n)
  end

  -- The client of a waiter, and whether it lives.
  local function client_of(entry, now)
    local client = string.match(entry, '^%a:([^:]*):') or ''
    local life = redis.pcall('ZSCORE', KEYS[3], client)
    return client, type(life) == 'string' and tonumber(life) < 0 and -tonumber(life) >= now
  end

  -- The first waiter whose client lives, that client, the arrival, and whether nobody else waits. The dead before it are dropped.
  -- Nothing if there is none, or if too many are dead: their number must not stop the server.
  local function first(now)
    for batch = 0, BATCHES do
      local head = redis.pcall('ZRANGEBYSCORE', KEYS[3], 0, '+inf', 'WITHSCORES', 'LIMIT', 0, 2)
      if head.err then
        return nil
      end
      if not head[1] then
        redis.pcall('DEL', KEYS[3])
        return nil
      end
      local client, lives = client_of(head[1], now)
      if lives then
        return head[1], client, tonumber(head[2]), not head[3]
      end
      if batch == BATCHES then
        return nil
      end
      local dead = {}
      for _, entry in ipairs(redis.pcall('ZRANGEBYSCORE', KEYS[3], 0, '+inf', 'LIMIT', 0, BATCH)) do
        client, lives = client_of(entry, now)
        if lives then
          break
        end
        dead[#dead + 1], dead[#dead + 2] = entry, client
      end
      if type(redis.pcall('ZREM', KEYS[3], unpack(dead))) == 'table' then
        return nil
      end
    end
  end

  -- Whether the waiter is served before anybody else: it is a fair one, or has waited for a second.
  local function is_next(entry, arrival, now)
    return string.find('fsq', string.sub(entry, 1, 1), 1, true) or now - arrival >= 1000000
  end

  -- The waiter's rank, and its arrival; nothing if it can't be enqueued.
  local function enqueue(entry, arrival, now)
    local client = string.match(entry, '^%a:([^:]*):')
    local known = client and redis.pcall('ZSCORE', KEYS[3], entry)
    if not client or type(known) == 'table' then
      return nil
    end
    if known then
      arrival = tonumber(known)
    else
      local last = redis.pcall('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2]
      local tail = math.max(now, last and math.max(tonumber(last), -1) + 1 or 0)
      if arrival <= 0 or arrival >= tail then
        arrival = tail
      end
    end
    local added = redis.pcall('ZADD', KEYS[3], number(arrival), entry, '-' .. number(now + ALIVE * 1000), client)
    if type(added) == 'table' then
      return nil
    end
    redis.pcall('PEXPIRE', KEYS[3], 60000)
    note_waiters()
    -- Every newcomer may bring a client, and takes some dead ones away.
    if not known then
      local dead = redis.pcall('ZRANGEBYSCORE', KEYS[3], '(-' .. number(now), '(0', 'LIMIT', 0, CLIENTS)
      if dead[1] then
        redis.pcall('ZREM', KEYS[3], unpack(dead))
      end
    end
    return redis.pcall('ZCOUNT', KEYS[3], 0, '(' .. number(arrival)), arrival
  end

  -- The limit that a waiter for a permit names.
  local function limit_of(entry)
    local limit = string.find('pq', string.sub(entry, 1, 1), 1, true) and string.match(entry, ' permits=(%d+)')
    return limit and #limit <= 5 and limit or nil
  end

  -- Notifies a waiter of what it may do, and within which time (ms); the error if that is not allowed.
  local function notify(entry, client, kind, window)
    local publish = (redis.REDIS_VERSION_NUM or 0) >= 0x00070000 and 'SPUBLISH' or 'PUBLISH'
    local waiter = string.sub(entry, 1, 1) .. string.sub(string.match(entry, '^%a:[^:]*:([^ ]*)'), 1, 1024)
    local limit = limit_of(entry)
    if limit then
      waiter = waiter .. '/' .. limit
    end
    -- In a cluster a script can publish on the channels of its own slot alone.
    local channel = (string.sub(client, 1, 1) == '@' and string.sub(KEYS[3], 1, -6) or '~lt:') .. 'wake:' .. client
    local message = kind .. ' ' .. window .. ' ' .. waiter .. ' ' .. KEYS[1]
    local sent = redis.pcall(publish, channel, message)
    -- The only node of a cluster, behind a plain URL: the channel has another slot than the lock, and the client listens to both kinds.
    if type(sent) == 'table' and string.find(sent.err, 'same slot', 1, true) then
      sent = redis.pcall('PUBLISH', channel, message)
    end
    -- An error may repeat the channel, and so a name that anybody may have written.
    return type(sent) == 'table' and string.sub(sent.err, 1, 1024) or nil
  end

  -- Notifies the first waiter that the lock is free, or keeps it for that one; the second when to look after it. `single_server`:
  -- no other one has a say; `keeps`: nobody may pass the first.
  local function wake(now, single_server, keeps)
    local head, client, arrival, alone = first(now)
    if not head then
      return nil
    end
    if alone then
      redis.pcall('DEL', KEYS[3])
    else
      redis.pcall('ZREM', KEYS[3], head)
    end
    local kind = 'free'
    if single_server and (keeps or is_next(head, arrival, now)) then
      kind = 'claim'
      redis.pcall('SET', KEYS[1], 'claim ' .. head, 'PX', CLAIM)
    end
    local failed = notify(head, client, kind, CLAIM)
    local second, other
    if not alone then
      second, other = first(now)
    end
    if second then
      failed = failed or notify(second, other, 'next', CLAIM)
    end
    return failed
  end

  return first, is_next, enqueue, wake, notify, limit_of
end

-- The reply of an acquire whose waiter joins the queue: it says where.
local function enqueued(reply, entry, arrival, now)
  local _, _, enqueue = queue()
  reply[6], reply[7] = enqueue(entry, arrival, now)
  return reply
end

