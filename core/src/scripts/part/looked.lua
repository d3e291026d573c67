-- The end of look.

return { 'info', now, fence, holder, redis.call('PTTL', KEYS[1]) }
