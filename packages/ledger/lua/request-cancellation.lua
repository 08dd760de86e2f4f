#!lua flags=allow-oom
-- Notes in a job's record that its cancellation was requested. A beginning finds the note, however long the job waits.
-- KEYS  1 job (hash)
-- Reply 1   noted
--       0   no such job is known: nothing was changed
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
redis.call('HSET', KEYS[1], 'cancel', '1')
return 1
