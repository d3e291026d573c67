-- Has the clock give no fence any more up to this one. What is no clock stays as it is, and so does one to which an hour is missing.
local function raise(fence)
  local last, failed = last_fence()
  if failed and string.sub(failed, 1, 9) == 'WRONGTYPE' then
    return
  end
  local ahead = math.max(math.floor(now / 1000) * 1000, last + 1)
  if fence > last and fence - ahead <= 3600000000 then
    local id = string.format('%.0f-%.0f', math.floor(fence / 1000), fence % 1000)
    redis.call('XADD', KEYS[2], 'MAXLEN', 0, id, '', '')
  end
end

