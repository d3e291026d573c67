
-- The end of a script that shows the record alone.
return { 'record', now, 0, false, -2, false, record }
