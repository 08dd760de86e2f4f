-- Takes over the lock of a job that somebody else took from the queue, for whoever holds the sandbox. Nobody else may move it then.
-- KEYS  1 lease (hash)  2 the job's lock (string)
-- ARGV  1 epoch  2 token  3 ms the lock is kept
-- Reply 1   it is ours to complete
--       0   another epoch holds the sandbox: nothing was changed
local held = redis.call('HMGET', KEYS[1], 'worker', 'epoch')
if held[2] ~= ARGV[1] or not held[1] or held[1] == '' then
  return 0
end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return 1
