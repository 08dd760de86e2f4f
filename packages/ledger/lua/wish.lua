#!lua flags=allow-oom
-- Notes on a job's own record that its cancellation was requested: the set of such requests expires, and the job may wait for longer.
-- KEYS  1 job (hash)
-- Reply 1   noted
--       0   no such job is known: nothing was changed
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
redis.call('HSET', KEYS[1], 'cancel', '1')
return 1
