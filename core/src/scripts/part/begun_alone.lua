
-- Stands behind not_begun: nobody else has to hear of it.
local over, waits, entry = not_begun, false, ''
