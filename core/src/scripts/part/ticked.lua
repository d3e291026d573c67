local fence, broken = tick(tonumber(ARGV[3]) or 0)
return fence and { 'vote', now, tonumber(fence), ARGV[1], tonumber(ARGV[2]) } or broken
