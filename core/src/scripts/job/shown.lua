-- The end of status.

return { 'record', now, fence, holder, redis.call('PTTL', KEYS[1]), false, record }
