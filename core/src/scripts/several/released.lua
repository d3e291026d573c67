
local reply, time
for at = #locks, 1, -1 do
  reply = release(locks[at], ARGV)
  time = time or reply ~= 1 and reply[2]
end
return reply == 1 and time and { 'ok', time, 0, false, -2 } or reply
