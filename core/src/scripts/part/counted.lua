
-- Stands behind due.
return { 'vote', now, fence, ARGV[1], tonumber(ARGV[2]) }
