
-- Stands behind not_begun: nobody else has to be notified.
local over, waits, entry = not_begun, false, ''
