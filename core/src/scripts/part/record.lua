-- Stands before the scripts of a job that serve its record alone: the other keys may be on another node, as the slot moves there. The
-- record stands in the places of all keys.

local KEYS = { KEYS[1], KEYS[1], KEYS[1], KEYS[1], KEYS[1] }
local holder, value = false, false
