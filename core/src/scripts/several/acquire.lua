-- Takes several free locks at once, or none of them, with the next fence of each.
--
-- KEYS     of each lock, one behind the other: lock, clock, queue, marker, marks
-- ARGV     as acquire's, but that no owner is adopted
-- returns  {'vote', time (µs), fence, owner, remaining (ms), nil, nil, nil, the fence of each lock}   all are ours
--          what acquire returns of the first lock that isn't free, and as the ninth which one it is: the waiter is in its queue
-- always   no lock is taken unless all are; the waiter is in no other queue, and what was kept for it at another lock, or what it was
--          notified of there, is the next waiter's

