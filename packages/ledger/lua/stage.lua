-- Puts a request beside the queue. One that belongs to an accepted job is left alone: only the first of an id counts.
-- KEYS  1 staged (string)
-- ARGV  1 request  2 ms until it is forgotten if no job is accepted for it
-- Reply 1   put
--       0   there is an accepted job's
if redis.call('PTTL', KEYS[1]) == -1 then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
