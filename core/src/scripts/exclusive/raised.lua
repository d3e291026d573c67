raise(tonumber(ARGV[2]))
