if owner_of(value) ~= ARGV[1] then
  return { 'no', now, fence_of(value), shown(value), redis.call('PTTL', KEYS[1]) }
end
