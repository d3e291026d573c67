-- The gate: what the lock's key holds while several hold the lock at once, `read <period>` or `permits <n>`. It ends with the last mark.

-- The kind of a gate, and its number; nothing for any other value.
local function gate_of(value)
  local kind, number = string.match(value or '', '^(%l+) (%d+)$')
  if (kind == 'read' or kind == 'permits') and #number <= 16 and tonumber(number) < 2^53 then
    return kind, tonumber(number)
  end
end

