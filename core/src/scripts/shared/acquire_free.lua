-- Whether the gate is of this kind, and some mark lives.
local last = kind == mine and last_mark()

-- Another number of permits that others ask for is shown.
local function with_limit(reply)
  if last and limit and limit ~= number then
    reply[6], reply[7], reply[8] = reply[6] or false, reply[7] or false, number
  end
  return reply
end

local function held()
  local left, holder = redis.call('PTTL', KEYS[1]), holder_of(value)
  if kind == 'permits' and limit then
    local soonest = redis.pcall('ZRANGEBYSCORE', marks, '(' .. whole(ms), '+inf', 'WITHSCORES', 'LIMIT', 0, 20)
    if soonest[2] then
      holder, left = named(owner_in(soonest), value), soonest[2] - ms
    end
  end
  local reply = { 'held', now, 0, holder, left }
  if waits then
    enqueued(reply, entry, came, now)
  end
  return with_limit(reply)
end

if value and not last and not (waits and value == 'claim ' .. entry) then
  return held()
end

-- Most often there is neither a queue nor a mark.
local is_bare = not value and redis.call('EXISTS', KEYS[3], marks) == 0
local first, is_next, enqueue, wake
local head, arrival, _
if not is_bare and not downgrades and redis.call('EXISTS', KEYS[3]) == 1 then
  first, is_next, enqueue, wake = queue()
  head, _, arrival = first(now)
  -- Who was notified has left the queue, but names the arrival it had.
  if head == entry or came > 0 and arrival and came < arrival then
    head = nil
  end
end
local is_fair = letter == 's' or letter == 'q'
local known = last and living(ARGV[1])
local claim = last and waits and limit and living('claim ' .. entry) and 'claim ' .. entry
if last and not known then
  if head and not claim then
    local its = string.sub(head, 1, 1)
    local is_of_kind
    if limit then
      is_of_kind = its == 'p' or its == 'q'
    else
      is_of_kind = its == 'r' or its == 's'
    end
    if is_fair or not is_of_kind or limit and is_next(head, arrival, now) then
      admit(kind, number)
      return held()
    end
  end
  if limit and redis.call('ZCOUNT', marks, '(' .. whole(ms), '+inf') - (claim and 1 or 0) >= limit then
    -- Others were let in by a larger limit, and the claim is of no use.
    if claim then
      redis.call('ZREM', marks, claim)
      end_at(last_mark())
      admit(kind, number)
    end
    return held()
  end
elseif head and not value and (is_fair or is_next(head, arrival, now)) then
  wake(now, true, true)
  value = redis.call('GET', KEYS[1])
  return held()
end

